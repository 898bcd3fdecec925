// autocast on PyTorch's database of operators: the dtypes of results under autocast are those that PyTorch gives (test/goldens/around/autocast-ops.json), for arguments of each dtype.
import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { Tensor, TensorfxError, torch } from 'tensorfx'
import type { DType } from 'tensorfx'
import { MissingName } from './python.ts'
import { callOf, optionsOf } from './opdb/calls.ts'
import { Absent, decode, readDatabase } from './opdb/stored.ts'
import type { OperatorCase } from './opdb/stored.ts'

interface Dtypes {
  readonly in?: readonly string[]
  readonly off?: readonly string[] | { readonly error: string }
  readonly on?: readonly string[] | { readonly error: string }
}
type Recorded = { readonly name: string; readonly variant: string } & Readonly<Partial<Record<DType | 'mixed', Dtypes>>>

const recorded: readonly Recorded[] = JSON.parse(readFileSync(new URL('../goldens/around/autocast-ops.json', import.meta.url), 'utf8'))

const tensorsIn = (value: unknown): readonly Tensor[] =>
  value instanceof Tensor
    ? [value]
    : Array.isArray(value)
      ? value.flatMap(tensorsIn)
      : typeof value === 'object' && value !== null
        ? Object.values(value).flatMap(tensorsIn)
        : []

/** The arguments with their floating-point tensors in a dtype; `mixed`: the first one float32, the others bfloat16. */
function inDtype(value: unknown, dtype: string, seen: { count: number }): unknown {
  if (value instanceof Tensor) {
    if (!value.isFloatingPoint()) return value
    const first = seen.count++ === 0
    return value.to(dtype === 'mixed' ? (first ? 'float32' : 'bfloat16') : (dtype as DType))
  }
  if (Array.isArray(value)) return value.map((item) => inDtype(item, dtype, seen))
  return value
}

/** The dtypes of results; null if the call is refused. */
function dtypesOf(run: () => unknown): readonly string[] | null {
  try {
    return tensorsIn(run()).map(({ dtype }) => dtype)
  } catch (error) {
    if (error instanceof TensorfxError || error instanceof MissingName || error instanceof Absent) return null
    throw error
  }
}

/** What is one operator here and another one, or a function in Python, there: PyTorch's list has the one, and not the other. */
const DIFFERENT = ['nn.functional.max_pool3d ', 'nn.functional.max_unpool1d ', 'linalg.pinv ', 'masked.prod ', 'masked.cumprod ']

it('results have the dtypes that PyTorch gives (difference: autocast-composites)', () => {
  const database = readDatabase<OperatorCase>('ops')
  const entries = new Map(database.entries.map((entry) => [`${entry.name} ${entry.variant ?? ''}`, entry]))
  const wrong: string[] = []
  let judged = 0
  for (const { name, variant, ...byDtype } of recorded) {
    const one = entries.get(`${name} ${variant}`)?.cases.find(({ dt }) => dt === 'float32')
    const call = callOf(name, variant)
    if (one === undefined || call === null) continue
    for (const [dtype, { in: given, off, on }] of Object.entries(byDtype)) {
      if (!Array.isArray(off) || !Array.isArray(on)) continue
      const run = (): unknown => {
        const seen = { count: 0 }
        const args = one.args.map((arg) => inDtype(decode(arg, database.tensor), dtype, seen))
        const options = optionsOf(Object.entries(one.kw).map(([key, value]) => [key, inDtype(decode(value, database.tensor), dtype, seen)]))
        const inputs = tensorsIn([args, options]).map((tensor) => tensor.dtype)
        // Another sample than the recorded one.
        if (given !== undefined && inputs.join() !== given.join()) throw new Absent('another sample')
        return call(args, options)
      }
      // What differs without autocast says nothing of autocast.
      if (dtypesOf(run)?.join() !== off.join()) continue
      judged++
      const actual = dtypesOf(() => torch.autocast({ dtype: 'bfloat16' }, run))
      if (actual?.join() !== on.join()) wrong.push(`${name} ${variant} ${dtype}: ${actual?.join() ?? 'refused'} instead of ${on.join()}`)
    }
  }
  expect(wrong.filter((text) => !DIFFERENT.some((start) => text.startsWith(start)))).toEqual([])
  expect(DIFFERENT.filter((start) => !wrong.some((text) => text.startsWith(start)))).toEqual([])
  expect(judged).toBeGreaterThan(500)
})
