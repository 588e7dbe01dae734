// The charts of a document are drawn as wide as they are.
import { fitting } from "../base/fitting.ts";

fitting();

export default { fitting };
