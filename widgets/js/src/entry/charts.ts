// The charts of a document are drawn as wide as they are.
import { fitting } from "../base/resize.ts";

fitting();

export default { fitting };
