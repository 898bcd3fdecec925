// Everything that users can import has a doc comment. `tensorfx docs` finds such names by the compiler, which takes long; this goes by the names of the public surface, so that an internal
// declaration with the name of a public one needs a comment as well.
import { readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'

const root = fileURLToPath(new URL('../..', import.meta.url))
const surface = join(root, 'test/goldens/public-surface')

const publicNames = new Set(
  readdirSync(surface).flatMap((file) =>
    [...readFileSync(join(surface, file), 'utf8').matchAll(/^(?:(?:class|interface|type|function|const|abstract|declare) )*([\w$]+)/gm)].map(
      ([, name]) => name,
    ),
  ),
)

/** The exported names of a module, and whether one of their declarations has a comment before it. */
function exportsOf(source: string): ReadonlyMap<string, boolean> {
  const found = new Map<string, boolean>()
  const lines = source.split('\n').filter((line) => !/^\/\/ (?:es|ox)lint-disable/.test(line))
  for (const [i, line] of lines.entries()) {
    const [, name] = /^export (?:declare |abstract |async )*(?:function\*?|class|interface|type|const|enum) ([\w$]+)/.exec(line) ?? []
    if (name !== undefined) found.set(name, found.get(name) === true || /\*\/\s*$/.test(lines[i - 1] ?? ''))
  }
  return found
}

it('public names have doc comments', () => {
  const files = readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' }).filter(
    (path) => path.endsWith('.ts') && !path.endsWith('.d.ts') && !/\b(?:generated|page)\b\//.test(path.replaceAll('\\', '/')),
  )
  const seen = files.flatMap((path) => [...exportsOf(readFileSync(join(root, 'src', path), 'utf8'))].map(([name, has]) => ({ path, name, has })))
  const all = seen.filter(({ name }) => publicNames.has(name))
  expect(all.length).toBeGreaterThan(1000)
  expect(all.filter(({ has }) => !has).map(({ path, name }) => `${path}: ${name}`)).toEqual([])
})
