// docs/operators.md is the operator table, and src/cli/measuredDtypes.ts says which dtypes operators refuse. A new operator changes both: `npm run docs:operators`
// (this test with TENSORFX_UPDATE_DOCS=1) writes them. Read the difference before you commit it. A tenth of the operators is called, others each day, and all of them for an update.
import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'
import { DTYPE_WORDS, declaredDtypes, dtypesOf } from '../../src/cli/operatorDtypes.ts'
import { MEASURED } from '../../src/cli/measuredDtypes.ts'
import { operatorPage } from '../../src/cli/operatorPage.ts'
import { isChosen } from '../helpers/rotation.ts'
import { builtInOps } from '../ops/builtInOps.ts'
import { measuredDtypes } from '../ops/measuredDtypes.ts'
import { allValueCases } from '../ops/valueCases.ts'

const update = process.env['TENSORFX_UPDATE_DOCS'] === '1'
const at = (path: string): string => fileURLToPath(new URL(`../../${path}`, import.meta.url))

const INTEGERS = ['uint8', 'int8', 'int16', 'int32', 'int64']
const FLOATS = ['float16', 'bfloat16', 'float32', 'float64']
const words: ReadonlyMap<string, string> = new Map(
  Object.entries({
    all: ['bool', ...INTEGERS, ...FLOATS],
    numeric: [...INTEGERS, ...FLOATS],
    floating: FLOATS,
    integral: ['bool', ...INTEGERS],
    integer: INTEGERS,
    int32: ['int32'],
  }).map(([word, dtypes]) => [dtypes.join(), word]),
)
const cases = await allValueCases()

/** The word for the dtypes that an operator was found to take. */
const measured = new Map(
  builtInOps()
    .filter((op) => op.pointwise === null && op.reduction === null) // dtypeTable.test.ts tests the rules of these
    .filter((op) => update || isChosen(op.qualname))
    .map((op) => {
      const dtypes = measuredDtypes(op, cases.get(op.qualname) ?? [])
      return [op, dtypes === null ? 'chosen' : (words.get(dtypes.join()) ?? dtypes.join(', '))]
    }),
)

if (update)
  it('src/cli/measuredDtypes.ts is updated', () => {
    const lists = new Map<string, string[]>()
    for (const [op, word] of measured) if (word !== declaredDtypes(op)) lists.set(word, [...(lists.get(word) ?? []), op.qualname])
    const head = '// Written by npm run docs:operators: the operators that take other dtypes than their declarations say, found by calling them.'
    const entries = [...lists].toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([word, names]) => `  ${word}: '${names.toSorted().join(' ')}',`)
    writeFileSync(at('src/cli/measuredDtypes.ts'), `${head}\nexport const MEASURED: Readonly<Record<string, string>> = {\n${entries.join('\n')}\n}\n`)
  })

it.skipIf(update)('the dtypes in the table are those that the operators take (npm run docs:operators writes src/cli/measuredDtypes.ts)', () => {
  const wrong = [...measured].filter(([op, word]) => dtypesOf(op) !== word).map(([op, word]) => `${op.qualname}: ${word}, not ${dtypesOf(op)}`)
  expect(wrong).toEqual([])
  const named = new Set(builtInOps().map(({ qualname }) => qualname))
  expect(
    Object.values(MEASURED)
      .flatMap((names) => names.split(' '))
      .filter((name) => !named.has(name)),
  ).toEqual([])
  for (const word of Object.keys(MEASURED)) expect(DTYPE_WORDS).toHaveProperty(word)
})

it('docs/operators.md is up to date (npm run docs:operators writes it)', () => {
  const page = operatorPage((op) => measured.get(op) ?? (update ? declaredDtypes(op) : dtypesOf(op)))
  if (update) writeFileSync(at('docs/operators.md'), page)
  expect(readFileSync(at('docs/operators.md'), 'utf8')).toBe(page)
})
