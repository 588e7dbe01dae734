// Bundles each entry into widgets/braid_widgets/static. With --check nothing is written, and it
// fails when a bundle there is not what the sources make.
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const target = join(here, "..", "braid_widgets", "static");
const entries = readdirSync(join(here, "src", "entry")).sort();

const { outputFiles } = await build({
  absWorkingDir: here,
  entryPoints: entries.map((name) => join("src", "entry", name)),
  outdir: target,
  bundle: true,
  format: "esm",
  target: "es2023",
  charset: "utf8",
  minify: true,
  write: false,
});
const made = new Map(outputFiles.map((file) => [basename(file.path), file.text]));
const there = existsSync(target) ? readdirSync(target) : [];
const current = (name) => there.includes(name) && readFileSync(join(target, name), "utf8");
const stale = [...made].filter(([name, text]) => current(name) !== text).map(([name]) => name);
const left = there.filter((name) => !made.has(name));

if (process.argv.includes("--check")) {
  for (const name of [...stale, ...left]) console.error(`static/${name} is stale: run make js`);
  process.exitCode = stale.length + left.length ? 1 : 0;
} else {
  mkdirSync(target, { recursive: true });
  for (const name of stale) writeFileSync(join(target, name), made.get(name));
  for (const name of left) rmSync(join(target, name));
}
