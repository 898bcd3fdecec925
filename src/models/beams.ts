// The search for the most likely continuation with several beams, by the rules of Hugging Face's `generate`: a text that ends leaves its beam, and the search ends when no beam can
// become better than the texts that were found.
import { tensor } from '../ops/index.ts'
import type { Tensor } from '../tensor/index.ts'

/** How to search. */
export interface BeamOptions {
  readonly numBeams: number
  readonly maxNewTokens: number
  readonly lengthPenalty: number
  readonly eosTokenId: number | null
}

interface Found {
  readonly tokens: readonly number[]
  readonly score: number
}

interface Beam {
  readonly tokens: readonly number[]
  /** The sum of logarithms of probabilities. */
  readonly sum: number
}

/** The beams of one text. */
class Search {
  readonly #options: BeamOptions
  readonly #found: Found[] = []
  beams: readonly Beam[]

  constructor(options: BeamOptions) {
    this.#options = options
    // All beams begin alike: only one of them may count.
    this.beams = Array.from({ length: options.numBeams }, (_, i) => ({ tokens: [], sum: i === 0 ? 0 : -1e9 }))
  }

  #score({ tokens, sum }: Beam): number {
    return sum / tokens.length ** this.#options.lengthPenalty
  }

  #keep(beam: Beam): void {
    this.#found.push({ tokens: beam.tokens, score: this.#score(beam) })
    this.#found.sort((a, b) => b.score - a.score)
    this.#found.length = Math.min(this.#found.length, this.#options.numBeams)
  }

  /** Goes on with the best candidates, best first. Returns from which beam each new one comes. */
  advance(candidates: readonly { readonly from: number; readonly token: number; readonly sum: number }[]): readonly number[] {
    const { numBeams, eosTokenId } = this.#options
    const next: (Beam & { readonly from: number })[] = []
    for (const [rank, { from, token, sum }] of candidates.entries()) {
      const beam = { tokens: [...(this.beams[from]?.tokens ?? []), token], sum }
      if (token !== eosTokenId) next.push({ ...beam, from })
      else if (rank < numBeams) this.#keep(beam)
      if (next.length === numBeams) break
    }
    this.beams = next
    return next.map(({ from }) => from)
  }

  /** Whether no beam can become better than the texts that were found. */
  get isDone(): boolean {
    const worst = this.#found[this.#options.numBeams - 1]
    const [best] = this.beams
    return best === undefined || (worst !== undefined && worst.score >= this.#score(best))
  }

  /** The best text. */
  result(): readonly number[] {
    if (!this.isDone || this.#found.length < this.#options.numBeams) for (const beam of this.beams) this.#keep(beam)
    return this.#found[0]?.tokens ?? []
  }
}

/**
 * The best continuation of each text. `next` gets the tokens to read, int64 [texts * beams, time], and from which rows of the last call they go on (null at first), and returns scores
 * [texts * beams, vocabulary].
 */
export function searchBeams(
  texts: number,
  options: BeamOptions,
  next: (tokens: Tensor | null, rows: Tensor | null) => Tensor,
): readonly (readonly number[])[] {
  const { numBeams, maxNewTokens } = options
  const searches = Array.from({ length: texts }, () => new Search(options))
  const ended = new Map<number, readonly number[]>()
  let [tokens, rows]: [Tensor | null, Tensor | null] = [null, null]
  for (let step = 0; step < maxNewTokens && ended.size < texts; step++) {
    const logarithms = next(tokens, rows).float().logSoftmax(-1)
    const vocabulary = logarithms.size(-1)
    const sums = tensor(searches.flatMap(({ beams }) => Array.from({ length: numBeams }, (_, i) => beams[i]?.sum ?? -1e9)))
    const all = logarithms.add(sums.unsqueeze(1)).view(texts, numBeams * vocabulary)
    const [best, places] = all.topk(Math.min(2 * numBeams, numBeams * vocabulary), -1)
    const [scores, indices] = [best.toArray(), places.toArray()]
    const chosen: number[] = []
    const from: number[] = []
    for (const [i, search] of searches.entries()) {
      if (!ended.has(i)) {
        const [own, at] = [rowOf(scores, i), rowOf(indices, i)]
        const candidates = at.map((place, k) => ({ from: Math.floor(place / vocabulary), token: place % vocabulary, sum: own[k] ?? -Infinity }))
        const origins = search.advance(candidates)
        for (let k = 0; k < numBeams; k++) from.push(i * numBeams + (origins[k] ?? 0))
        for (let k = 0; k < numBeams; k++) chosen.push(search.beams[k]?.tokens.at(-1) ?? 0)
        if (search.isDone) ended.set(i, search.result())
      } else {
        for (let k = 0; k < numBeams; k++) from.push(i * numBeams + k)
        for (let k = 0; k < numBeams; k++) chosen.push(0)
      }
    }
    tokens = tensor(chosen, { dtype: 'int64' }).unsqueeze(1)
    rows = tensor(from, { dtype: 'int64' })
  }
  return searches.map((search, i) => ended.get(i) ?? search.result())
}

/** A row of numbers of a nested list. */
function rowOf(lists: unknown, i: number): readonly number[] {
  const row: unknown = Array.isArray(lists) ? lists[i] : []
  return Array.isArray(row) ? row.map(Number) : []
}
