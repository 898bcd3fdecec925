// npm run generate: writes the index of the passes in src/fx/passes/each, so that a new pass is only a new file there. Runs before build, typecheck, lint and tests;
// needs neither a build nor a network. The index is not committed.
import { readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { fileURLToPath, pathToFileURL } from 'node:url'

const folder = new URL('../src/fx/passes/each/', import.meta.url)
const index = new URL('index.ts', folder)
/** Where the passes were before: a checkout that was pulled still has the index of then, which no longer compiles. */
const before = new URL('../src/fx/passes/library/', import.meta.url)

/** The files of the passes, in alphabetical order. */
export function passFiles() {
  return readdirSync(folder)
    .filter((name) => name.endsWith('.ts') && name !== 'index.ts')
    .toSorted()
}

/** Writes the index. Leaves it alone if it is up to date, so that watchers see no change. */
export function generate() {
  rmSync(before, { recursive: true, force: true })
  const lines = passFiles().map((name) => `export * from './${name}'`)
  const text = `// Written by scripts/generatePasses.mjs; not committed.\n${lines.join('\n')}\n`
  if (current() !== text) writeFileSync(index, text)
}

function current() {
  try {
    return readFileSync(index, 'utf8')
  } catch {
    return null
  }
}

if (process.argv[1] !== undefined && fileURLToPath(import.meta.url) === fileURLToPath(pathToFileURL(process.argv[1]))) generate()
