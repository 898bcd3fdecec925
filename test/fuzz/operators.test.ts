// Every operator of the table, called as a graph from a file may call it: the value cases with hostile integers, shapes and indices in them, on the checked heap,
// eager and compiled. A call may return or throw an error of tensorfx. TENSORFX_FUZZ=200 TENSORFX_SEED=7 npx vitest run test/fuzz/operators.test.ts draws more.
import { expect, test, vi } from 'vitest'
import { TensorfxError, compile, torch } from 'tensorfx'
import type { DType } from 'tensorfx'
import { reset } from 'tensorfx/compile'
import { FakeTensorMode, withMode } from '../../src/dispatch/index.ts'
import { InternalError, UnsupportedError } from '../../src/errors/index.ts'
import { setHeapGuard } from '../../src/kernels/memory/heap.ts'
import { OutOfMemoryError } from '../../src/kernels/memory/outOfMemory.ts'
import { HeapCheck } from '../../src/kernels/memory/heapCheck.ts'
import { hashOf, randomFrom } from '../../scripts/fuzz/random.mjs'
import { builtInOps, hasPlainValues } from '../ops/builtInOps.ts'
import { Plain } from '../ops/plain.ts'
import { allValueCases, replace, tensorOf } from '../ops/valueCases.ts'

const ROUNDS = Number(process.env.TENSORFX_FUZZ ?? 2)
const SEED = Number(process.env.TENSORFX_SEED ?? 1)
/** Only operators whose name contains this. */
const ONLY = process.env.TENSORFX_FUZZ_ONLY ?? ''
const LARGEST = 2 ** 20

/** A checked heap that is small, so that an index as large as those below is outside of the memory altogether, where WebAssembly traps. */
class SmallHeap extends HeapCheck {
  override allocate(bytes: number, take: (bytes: number) => number): number {
    return bytes > LARGEST ? 0 : super.allocate(bytes, take)
  }

  override spill(bytes = 0): void {
    if (bytes > LARGEST) throw new OutOfMemoryError(bytes)
  }
}

const NUMBERS = [
  -1,
  0,
  1,
  2,
  3,
  5,
  7,
  100,
  // As a number of windows, more than that take seconds, and show nothing new.
  4096,
  2 ** 28 + 5,
  -(2 ** 28),
  2 ** 29 + 1,
  2 ** 31 - 1,
  2 ** 31,
  -(2 ** 31),
  2 ** 32,
  2 ** 53,
  NaN,
  0.5,
  -2,
  -7,
]
const INDICES = [-1, -2, 5, 100, 2 ** 28 + 5, -(2 ** 28), 2 ** 29 + 1, 2 ** 31 - 1, -(2 ** 31)]
const INTEGERS: readonly DType[] = ['int32', 'int64', 'uint8', 'int8', 'int16']
const DTYPES: readonly DType[] = ['float32', 'float64', 'float16', 'bool', ...INTEGERS]

type Random = ReturnType<typeof randomFrom>

/** The tensor with another shape: fewer or more dimensions, or one of another size. */
function reshaped(random: Random, { shape, data, kind }: Plain): Plain {
  const sizes = [...shape]
  const at = random.int(Math.max(sizes.length, 1))
  const how = random.int(4)
  if (how === 0) sizes.splice(at, 1)
  else if (how === 1) sizes.splice(at, 0, random.pick([0, 1, 2, 3]))
  else if (sizes.length > 0) sizes[at] = random.pick([0, 1, 2, 3, 4, 7, 9, 50])
  const count = sizes.reduce((n, size) => n * size, 1)
  return count > 1e5
    ? new Plain(shape, data, kind)
    : new Plain(
        sizes,
        Array.from({ length: count }, (_, i) => data[i % Math.max(data.length, 1)] ?? 0),
        kind,
      )
}

function hostile(random: Random, plain: Plain): Plain {
  const isIndex = plain.kind === 'int' || INTEGERS.some((dtype) => dtype === plain.kind)
  const how = random.int(isIndex ? 3 : 2)
  if (how === 2 && plain.data.length > 0) {
    const at = random.int(plain.data.length)
    const large = plain.kind === 'int64' || plain.kind === 'int' || plain.kind === 'int32'
    const value = random.pick(large ? INDICES : [5, 100])
    return plain.map((old, i) => (i === at || random.chance(0.2) ? value : old))
  }
  return how === 1 && random.chance(0.3)
    ? new Plain(
        plain.shape,
        plain.data.map((value) => Math.trunc(value)),
        random.pick(DTYPES),
      )
    : reshaped(random, plain)
}

/** The arguments with one to three of their parts replaced. */
function mutated(random: Random, args: readonly unknown[]): unknown[] {
  let parts = 0
  const walk = (value: unknown, visit: (part: unknown) => unknown): unknown => {
    if (value instanceof Plain || typeof value === 'number' || typeof value === 'boolean') return visit(value)
    if (Array.isArray(value)) {
      const list = value.map((item) => walk(item, visit))
      return visit(list)
    }
    if (typeof value === 'object' && value !== null && Object.getPrototypeOf(value) === Object.prototype)
      return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, walk(item, visit)]))
    return value
  }
  for (const arg of args) {
    walk(arg, (part) => {
      parts++
      return part
    })
  }
  const wanted = new Set(Array.from({ length: 1 + random.int(3) }, () => random.int(parts)))
  let at = -1
  const change = (part: unknown): unknown => {
    at++
    if (!wanted.has(at)) return part
    if (part instanceof Plain) return hostile(random, part)
    if (typeof part === 'number') return random.pick(NUMBERS)
    if (typeof part === 'boolean') return !part
    if (!Array.isArray(part)) return part
    const list: unknown[] = [...part]
    const position = random.int(list.length + 1)
    if (random.chance(0.5)) list.splice(position, 1)
    else list.splice(position, 0, list[0] instanceof Plain ? list[0] : random.pick(NUMBERS))
    return list
  }
  const result = args.map((arg) => walk(arg, change))
  // An argument that the case leaves out.
  if (random.chance(0.15)) result.push(random.pick(NUMBERS))
  return result
}

const textOf = (value: unknown): string =>
  value instanceof Plain
    ? `${value.kind}[${value.shape.join()}]${value.kind === 'float' ? '' : `(${value.data.slice(0, 8).join()})`}`
    : Array.isArray(value)
      ? `[${value.map(textOf).join(', ')}]`
      : typeof value === 'object' && value !== null
        ? `{${Object.entries(value)
            .map(([key, item]) => `${key}: ${textOf(item)}`)
            .join(', ')}}`
        : String(value)

const isOurs = (error: unknown): boolean => error instanceof TensorfxError && !(error instanceof InternalError)

/** The message of the error that a call throws in a graph; null if it throws none, or one that says that a graph cannot hold the operator. */
function refusalOf(run: () => unknown): string | null {
  try {
    run()
    return null
  } catch (error) {
    return error instanceof UnsupportedError || String(error).includes('this tensor is fake') ? null : String(error)
  }
}

const cases = await allValueCases()

test('no operator reads or writes outside its tensors, whatever integers, shapes and indices it is called with', () => {
  const heap = new SmallHeap()
  const before = setHeapGuard(heap)
  const warn = vi.spyOn(console, 'warn').mockImplementation(() => undefined)
  const findings: string[] = []
  let [calls, refused] = [0, 0]
  const attempt = (text: string, run: () => unknown): void => {
    calls++
    try {
      const result = run()
      for (const item of [result].flat()) if (item instanceof torch.Tensor && item.numel < LARGEST) item.toTypedArray()
    } catch (error) {
      refused++
      if (!isOurs(error)) findings.push(`${text}: ${String(error)}${ONLY === '' ? '' : `\n${error instanceof Error ? error.stack : ''}`}`)
    }
  }
  for (const { qualname, fn } of builtInOps().filter(hasPlainValues)) {
    if (!qualname.includes(ONLY)) continue
    const list = cases.get(qualname) ?? []
    if (list.length === 0) findings.push(`${qualname} has no value case`)
    const random = randomFrom(SEED ^ hashOf(qualname))
    for (let round = 0; round < ROUNDS && list.length > 0; round++) {
      const one = random.pick(list)
      const args = mutated(random, one.args)
      const float = random.pick<DType>(['float32', 'float32', 'float64', 'float16'])
      const int = random.pick<DType>(['int32', 'int64'])
      const text = `${qualname}(${args.map(textOf).join(', ')}) in ${float} and ${int}`
      const make = (): unknown[] => args.map((arg) => replace(arg, (plain) => tensorOf(plain, float, int)))
      // What a graph refuses, the kernel must refuse too: operands of wrong shapes among it, of which some would read too little, and no index outside. Values are not known in a graph.
      attempt(text, () => {
        const refusal = refusalOf(() => withMode(new FakeTensorMode(), () => Reflect.apply(fn, undefined, make())))
        const result: unknown = Reflect.apply(fn, undefined, make())
        if (refusal !== null) findings.push(`${text}: computed, and a graph refuses it: ${refusal}`)
        return result
      })
      if (round % 4 === 0)
        attempt(`compiled ${text}`, () => compile<(...inputs: unknown[]) => unknown>((...inputs) => Reflect.apply(fn, undefined, inputs))(...make()))
    }
    reset()
    try {
      heap.verify()
    } catch (error) {
      findings.push(`${qualname}: afterwards ${String(error)}`)
    }
    heap.release()
  }
  warn.mockRestore()
  setHeapGuard(before)
  if (process.env.TENSORFX_FUZZ !== undefined) console.log(`${calls} calls, ${refused} refused, ${heap.launches} launches, seed ${SEED}`)
  expect(findings).toEqual([])
}, 1_200_000)
