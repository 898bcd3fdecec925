// Where a DataLoader is, as plain data.
import { ArgumentError } from '../errors/index.ts'
import { decode, integer, object } from '../protocol/decode.ts'
import type { Decoder } from '../protocol/decode.ts'
import type { GeneratorState } from '../tensor/index.ts'

/** Where a DataLoader is. JSON can hold it. */
export interface DataLoaderState {
  /** Passes over the data that have begun. */
  readonly passes: number
  /** The pass that is not at its end; null between passes. */
  readonly pass: {
    readonly number: number
    readonly seed: number
    /** The state of the generator that the order was drawn from. */
    readonly start: GeneratorState
    /** Batches that the loop has got. */
    readonly batches: number
  } | null
  /** The state of the loader's own generator; null without one. */
  readonly generator: GeneratorState | null
  /** That of the sampler. */
  readonly sampler: GeneratorState | null
}

const orNull =
  <T>(inner: Decoder<T>): Decoder<T | null> =>
  (value, place) =>
    value === null ? null : inner(value, place)

const GENERATOR = object({ seed: integer(), offset: integer() })

const STATE = object({
  passes: integer(),
  pass: orNull(object({ number: integer(), seed: integer(), start: GENERATOR, batches: integer() })),
  generator: orNull(GENERATOR),
  sampler: orNull(GENERATOR),
})

/** A state from outside. Throws ArgumentError unless it has the generators that the loader has. */
export function readState(given: DataLoaderState, has: { readonly hasGenerator: boolean; readonly hasSampler: boolean }): DataLoaderState {
  const where = 'DataLoader.loadStateDict'
  const state = decode(where, STATE, given, 'the state')
  for (const [name, isThere, isWanted] of [
    ['generator', state.generator !== null, has.hasGenerator],
    ['sampler', state.sampler !== null, has.hasSampler],
  ] as const)
    if (isThere !== isWanted)
      throw new ArgumentError(
        `${where}: the state is of a loader ${isThere ? 'with' : 'without'} a generator of its ${name === 'sampler' ? 'sampler' : 'own'}, and this one is ${isWanted ? 'with' : 'without'}; make it with the same options.`,
      )
  return state
}
