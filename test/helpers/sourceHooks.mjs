// Hooks of Node's module loader, see sources.ts: a module of src/ is its text with spaces where the types were, so that lines and columns are those of the source.
import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { withoutTypes } from '../../scripts/docs/examples.mjs'

export async function load(url, context, next) {
  if (!url.endsWith('.ts')) return next(url, context)
  return { format: 'module', source: withoutTypes(await readFile(fileURLToPath(url), 'utf8')), shortCircuit: true }
}
