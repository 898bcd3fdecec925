// Hooks of Node's module loader, see sources.ts: a module of src/ is its text with spaces where the types were, so that lines and columns are those of the source. Every process that
// test files share loads all of src/, and half of that time is taking types away, so the texts are kept in node_modules, each with the hash of its source behind it.
import { createHash } from 'node:crypto'
import { mkdir, readFile, rename, writeFile } from 'node:fs/promises'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { withoutTypes } from '../../scripts/docs/examples.mjs'

const root = fileURLToPath(new URL('../..', import.meta.url))
const kept = join(root, 'node_modules/.cache/tensorfx-sources')

/** The text of a source file without its types. */
async function sourceOf(path) {
  const text = await readFile(path, 'utf8')
  const end = `\n//# ${createHash('sha256').update(text).digest('hex')}`
  const file = join(kept, `${relative(root, path)}.js`)
  const before = await readFile(file, 'utf8').catch(() => '')
  if (before.endsWith(end)) return before
  const source = withoutTypes(text) + end
  await mkdir(dirname(file), { recursive: true })
  // Other processes may read or write it at the same time.
  const own = `${file}.${process.pid}`
  await writeFile(own, source)
  await rename(own, file)
  return source
}

export async function load(url, context, next) {
  if (!url.endsWith('.ts')) return next(url, context)
  return { format: 'module', source: await sourceOf(fileURLToPath(url)), shortCircuit: true }
}
