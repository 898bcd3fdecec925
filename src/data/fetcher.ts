// Reads batches from a dataset: the same code in the main thread and in worker threads. What a dataset draws from the default generator depends only on the seed of the
// pass and the position of the sample, so that it is the same with any number of workers, and after resuming.
import { messageOf } from '../errors/index.ts'
import { isCallable, isPromise } from '../protocol/index.ts'
import { defaultGenerator } from '../tensor/index.ts'
import type { GeneratorState } from '../tensor/index.ts'
import { defaultCollate, defaultConvert } from './collate.ts'
import { hasIndices, sampleOf } from './dataset.ts'
import type { IterableSource, MapDataset } from './dataset.ts'
import { SampleError } from './errors.ts'

/** How many draws a sample has of its own, before those of the next one. */
const DRAWS_PER_SAMPLE = 2 ** 16
/** The same for the streams of workers. */
const DRAWS_PER_WORKER = 2 ** 44

/** How samples become what the loop gets: 'default', or not at all if the main thread does it. */
export type Collation = 'default' | 'none'

/** What is to be read. */
export type Request = IndexRequest | StreamRequest

/** Samples by index: one for a loader without batches. */
interface IndexRequest {
  readonly indices: readonly number[]
  /** The position of the first one in the order. */
  readonly position: number
  readonly seed: number
}

/** The next of a stream, which starts again for another pass. */
interface StreamRequest {
  readonly pass: number
  readonly seed: number
}

/** How batches are made. */
export interface FetchPlan {
  /** Null for single samples. */
  readonly batchSize: number | null
  readonly dropLast: boolean
  readonly collation: Collation
}

/** What the end of a stream gives. */
export const END: unique symbol = Symbol('end')

const sampleError = (what: string, index: number | null, error: unknown): SampleError =>
  new SampleError(`DataLoader: ${what} failed: ${messageOf(error)}`, index, { cause: error })

/** What draws from the default generator; its state is kept here while another draws. */
interface Drawer {
  state: GeneratorState
}

/**
 * The program and the samples that are being made, the one that draws last. There is more than one sample if a dataset reads another loader, or if a program reads two
 * loaders at once. What an asynchronous reader draws after that is of the latest sample's stream: nothing tells who draws.
 */
const drawers: Drawer[] = []

/** Runs `fn` with the default generator in another state, until what it promises is there, and puts the state back. Returns the state that `fn` left. */
async function drawing(state: GeneratorState, fn: () => unknown): Promise<{ readonly value: unknown; readonly state: GeneratorState }> {
  const own: Drawer = { state }
  keepState()
  drawers.push(own)
  defaultGenerator.setState(state)
  try {
    const made = fn()
    const value = isPromise(made) ? await made : made
    keepState()
    return { value, state: own.state }
  } finally {
    endDrawing(own)
  }
}

/** Keeps the state of the generator for the one that draws: the program, if no sample is being made. */
function keepState(): void {
  const last = drawers.at(-1)
  const state = defaultGenerator.getState()
  if (last === undefined) drawers.push({ state })
  else last.state = state
}

/** A sample is made: if it was the one that draws, the one before it goes on. The program is the last that does. */
function endDrawing(own: Drawer): void {
  const hasDrawn = drawers.at(-1) === own
  drawers.splice(drawers.indexOf(own), 1)
  const [next] = drawers.slice(-1)
  if (hasDrawn && next !== undefined) defaultGenerator.setState(next.state)
  if (drawers.length === 1) drawers.pop()
}

/** A stream that is being read. */
interface Stream {
  readonly pass: number
  readonly read: () => unknown
  /** What the default generator goes on from. */
  state: GeneratorState
  position: number
  hasEnded: boolean
}

/** Reads one dataset. Requests must not overlap. */
export class Fetcher {
  readonly #source: MapDataset<unknown> | readonly unknown[] | IterableSource<unknown>
  readonly #plan: FetchPlan
  readonly #worker: number
  #stream: Stream | null = null

  constructor(source: MapDataset<unknown> | readonly unknown[] | IterableSource<unknown>, plan: FetchPlan, worker = 0) {
    this.#source = source
    this.#plan = plan
    this.#worker = worker
  }

  /** What a request asks for; {@link END} after the end of a stream. Throws SampleError. */
  async fetch(request: Request): Promise<unknown> {
    const samples = 'indices' in request ? await this.#byIndex(request) : await this.#next(request)
    if (samples === END || this.#plan.collation === 'none') return samples
    if (this.#plan.batchSize === null) return defaultConvert(samples)
    try {
      return defaultCollate(Array.isArray(samples) ? samples : [samples])
    } catch (error) {
      const which =
        'indices' in request ? ` of the samples ${request.indices.slice(0, 20).join(', ')}${request.indices.length > 20 ? ', …' : ''}` : ''
      throw sampleError(`collating the batch${which}`, null, error)
    }
  }

  async #byIndex({ indices, position, seed }: IndexRequest): Promise<unknown> {
    const source = this.#source
    if (!hasIndices(source)) return END
    const samples: unknown[] = []
    for (const [i, index] of indices.entries()) {
      try {
        const { value } = await drawing({ seed, offset: (position + i) * DRAWS_PER_SAMPLE }, () => sampleOf(source, index))
        samples.push(value)
      } catch (error) {
        throw sampleError(`sample ${index} of the dataset`, index, error)
      }
    }
    return this.#plan.batchSize === null ? samples[0] : samples
  }

  async #next({ pass, seed }: StreamRequest): Promise<unknown> {
    const source = this.#source
    if (hasIndices(source)) return END
    if (this.#stream === null || this.#stream.pass !== pass)
      this.#stream = { pass, read: readerOf(source), state: { seed, offset: this.#worker * DRAWS_PER_WORKER }, position: 0, hasEnded: false }
    const { batchSize, dropLast } = this.#plan
    const samples: unknown[] = []
    while (samples.length < (batchSize ?? 1)) {
      const sample = await this.#nextSample(this.#stream)
      if (sample === END) break
      samples.push(sample)
    }
    if (samples.length === 0 || (batchSize !== null && dropLast && samples.length < batchSize)) return END
    return batchSize === null ? samples[0] : samples
  }

  async #nextSample(stream: Stream): Promise<unknown> {
    if (stream.hasEnded) return END
    try {
      const { value: sample, state } = await drawing(stream.state, stream.read)
      stream.state = state
      if (sample === END) stream.hasEnded = true
      stream.position++
      return sample
    } catch (error) {
      throw sampleError(`sample ${stream.position} of the stream`, null, error)
    }
  }
}

/** What reads a stream sample by sample, or as a promise of it; END at its end. */
function readerOf(source: IterableSource<unknown>): () => unknown {
  if (isAsync(source)) {
    const iterator = source[Symbol.asyncIterator]()
    return async () => {
      const { done, value } = await iterator.next()
      return done === true ? END : value
    }
  }
  const iterator = source[Symbol.iterator]()
  return () => {
    const { done, value } = iterator.next()
    return done === true ? END : value
  }
}

const isAsync = (source: IterableSource<unknown>): source is AsyncIterable<unknown> => isCallable(Reflect.get(source, Symbol.asyncIterator))
