// PyTorch's own tests of fx (test/goldens/pytorch-tests.json: names by file and class) and what became of each: a test here whose title says the name, or a row of
// docs/tests-not-ported.md that says why not. A row names tests, or a whole file or class of them (`fx/test_gradual_type.py`).
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('../../', import.meta.url))

export interface Row {
  readonly names: readonly string[]
  readonly why: string
}

/** PyTorch's tests by file and class. */
export const pytorchTests = (): Readonly<Record<string, readonly string[]>> =>
  JSON.parse(readFileSync(`${root}test/goldens/pytorch-tests.json`, 'utf8')) as Readonly<Record<string, readonly string[]>>

/** The rows of docs/tests-not-ported.md. */
export const rowsNotPorted = (): Row[] =>
  readFileSync(`${root}docs/tests-not-ported.md`, 'utf8')
    .split('\n')
    .filter((line) => line.startsWith('| `'))
    .map((line) => {
      const [, names = '', why = ''] = line.split('|').map((cell) => cell.trim())
      return { names: [...names.matchAll(/`([^`]+)`/g)].map((match) => match[1] ?? ''), why }
    })

const fileOf = (group: string): string => group.split('::')[0] ?? group

/** What does not add up, as messages: tests of PyTorch that neither passed here nor have a row, and rows of tests that passed. `titles`: full titles of the tests that ran and passed. */
export function portingErrors(titles: readonly string[], classes: Readonly<Record<string, readonly string[]>>, rows: readonly Row[]): string[] {
  const passed = new Set(titles.flatMap((title) => title.match(/\btest[A-Z_]\w*/g) ?? []))
  const excused = new Set(rows.flatMap((row) => row.names))
  const missing = Object.entries(classes).flatMap(([group, names]) =>
    names.filter((name) => !passed.has(name) && ![name, group, fileOf(group)].some((key) => excused.has(key))).map((name) => `${group} ${name}`),
  )
  return [
    ...missing.map((name) => `${name}: no test with this name ran and passed, and docs/tests-not-ported.md does not say why`),
    ...[...excused]
      .filter((name) => passed.has(name))
      .map((name) => `${name}: docs/tests-not-ported.md says that it is not here, but it ran and passed`),
  ]
}
