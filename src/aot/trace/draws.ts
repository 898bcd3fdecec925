// Random operators in traces. Eagerly each draws a seed and an offset from a generator and computes numbers from them, so a trace would hold the numbers of
// one run for ever. Instead a graph draws anew at each run: it calls the random operator itself, or it takes the seed and the offset as inputs.
import type { Arg, OpDef } from '../../dispatch/index.ts'
import { InternalError, UnsupportedError } from '../../errors/index.ts'
import { philoxInteger, philoxNormal, philoxPermutation, philoxUniform, rand, randint, randn, randperm } from '../../ops/index.ts'
import type { OpFunction } from '../../ops/index.ts'
import { Generator, defaultGenerator, generatorOf, getRngState, setRngState } from '../../tensor/index.ts'
import type { RandomDraw } from '../../tensor/index.ts'

/** The numbers of a draw, in the order of the operators' arguments. */
const numbersOf = ({ seedLo, seedHi, offsetLo, offsetHi }: RandomDraw): readonly number[] => [seedLo, seedHi, offsetLo, offsetHi]

/** Numbers for `count` draws from the default generator, as inputs of a graph. */
export const drawNumbers = (count: number): readonly number[] => Array.from({ length: count }, () => numbersOf(defaultGenerator.draw())).flat()

/** Positions of the seed and the offset among an operator's arguments; empty for most operators. */
export const drawPositions = (op: OpDef): readonly number[] => {
  if (op.dynamicScalars.length === 0) return []
  const positions = op.dynamicScalars.map((name) => op.schema.args.findIndex((arg) => arg.name === name))
  return positions.includes(-1) ? [] : positions
}

/** Whether these numbers are the latest draw of the default generator. Throws UnsupportedError if they are that of another generator. */
export function isDraw(numbers: readonly (Arg | undefined)[]): boolean {
  const generator = generatorOf(numbers)
  if (generator !== null && generator !== defaultGenerator)
    throw new UnsupportedError(
      'a random operator with a generator of its own cannot be traced, since a graph cannot hold a generator: leave out the option, and seed with torch.manualSeed before the graph runs.',
    )
  return generator !== null
}

/** Numbers that have been drawn are constants of the traces that follow. */
export const forgetDraw = (): void => void new Generator(0).draw()

/** The public operator that draws and computes what `op` computes, with its arguments. (`randperm` gives int64.) */
export function drawing(op: OpDef, args: readonly Arg[]): { readonly fn: OpFunction; readonly args: readonly Arg[] } {
  const [first = null, low, range] = args
  if (op === philoxPermutation.op) return { fn: randperm, args: [first, null] }
  if (op === philoxUniform.op) return { fn: rand, args: [first, null, 'float32', false] }
  if (op === philoxNormal.op) return { fn: randn, args: [first, null, 'float32', false] }
  if (op === philoxInteger.op && typeof low === 'number' && typeof range === 'number')
    return { fn: randint, args: [low, low + (range >>> 0), first, null, 'int32', false] }
  throw new InternalError(`${op.qualname}: how a graph draws for it is not known`)
}

/** Runs a trace, and leaves the default generator as it was. `count` says afterwards how many draws it recorded. Throws UnsupportedError if it seeds the generator. */
export function withoutDrawing<T>(trace: () => T, count: () => number): T {
  return keepingState(() => {
    const before = getRngState()
    const result = trace()
    const { seed, offset } = getRngState()
    if (seed !== before.seed || offset !== before.offset + count())
      throw new UnsupportedError(
        'the traced function sets the state of the random generator, which a graph cannot do: seed it before the graph runs.',
      )
    return result
  })
}

/** Runs `fn`, which computes no data, and leaves the default generator as it was. */
export function keepingState<T>(fn: () => T): T {
  const state = getRngState()
  try {
    return fn()
  } finally {
    setRngState(state)
  }
}
