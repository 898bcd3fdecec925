// memoryTimeline: who has how much memory while a program runs. PyTorch's memory timeline of its profiler.
import { checkArgument, checkCallable, checkCount, checkOptions } from '../../protocol/index.ts'
import { sizeText } from '../../protocol/sizeText.ts'
import { formatShape } from '../../tensor/index.ts'
import { table } from '../common/table.ts'
import { dataPage } from './dataPage.ts'
import { MemoryRecorder } from './memoryRecorder.ts'
import type { Holding, MemoryCategory, MemoryPoint } from './memoryRecorder.ts'
import { checkTimes, runOf } from './runs.ts'

/** Options of {@link memoryTimeline}. */
export interface MemoryTimelineOptions {
  /** How often the program runs before it is recorded: compiled functions compile then, and optimizers make their state. Default 1. */
  readonly warmup?: number
  /** How often it is recorded. Default 1. */
  readonly runs?: number
}

/** By what memory is told apart. */
export type MemoryOwnership = 'category' | 'operator' | 'module'

/** The bytes of each owner over time. */
export interface MemorySeries {
  readonly owners: readonly string[]
  /** For each point in time, the bytes of each owner. */
  readonly bytes: readonly (readonly number[])[]
}

/** Tensors of one owner at a moment. */
export interface MemoryHolder {
  readonly category: MemoryCategory
  /** What made them: an operator; null if it is not known. */
  readonly operator: string | null
  /** The module that ran then; null for none. */
  readonly module: string | null
  /** Of a parameter, a buffer or a gradient its name; else null. */
  readonly name: string | null
  readonly shape: readonly number[] | null
  readonly dtype: string | null
  readonly count: number
  readonly bytes: number
}

const OWNERS: Readonly<Record<MemoryOwnership, (holding: Holding) => string>> = {
  category: ({ category }) => category,
  operator: ({ operator }) => operator ?? 'there before',
  module: ({ module }) => module ?? 'no module',
}

/** Points beyond this number are left out between the lowest and the highest ones. */
const MOST_POINTS = 800

/** Who had how much memory while a program ran. */
export class MemoryTimeline {
  /** The moments at which something changed, in milliseconds since the first, with all bytes in use; of many the lowest and highest. */
  readonly points: readonly MemoryPoint[]
  /** Which of the points has the most bytes in use. */
  readonly peak: number
  readonly #holdings: readonly Holding[]

  constructor(holdings: readonly Holding[], points: readonly MemoryPoint[]) {
    checkCount('MemoryTimeline', arguments, 2)
    const origin = points[0]?.time ?? 0
    this.points = thinned(points).map((point) => ({ ...point, time: point.time - origin }))
    this.#holdings = holdings.map((holding) => ({ ...holding, from: holding.from - origin, to: holding.to - origin }))
    this.peak = this.points.reduce((best, { inUse }, i) => (inUse > (this.points[best]?.inUse ?? 0) ? i : best), 0)
  }

  /** The bytes of each owner at each point: by what memory is for, by the operator that made it, or by the module that ran then. */
  by(ownership: MemoryOwnership): MemorySeries {
    checkCount('MemoryTimeline.by', arguments, 1)
    checkArgument(
      Object.hasOwn(OWNERS, ownership),
      'MemoryTimeline.by',
      'ownership',
      Object.keys(OWNERS)
        .join(', ')
        .replace(/, (?=\w+$)/, ' or '),
      ownership,
    )
    const ownerOf = OWNERS[ownership]
    const owners = [...new Set(this.#holdings.map(ownerOf)), 'scratch', 'unknown'].filter((owner, i, all) => all.indexOf(owner) === i)
    const places = new Map(owners.map((owner, i) => [owner, i]))
    const now = owners.map(() => 0)
    const changes = this.#holdings
      .flatMap((holding) => {
        const place = places.get(ownerOf(holding)) ?? 0
        return [
          { time: holding.from, place, bytes: holding.bytes },
          { time: holding.to, place, bytes: -holding.bytes },
        ]
      })
      .toSorted((a, b) => a.time - b.time)
    let next = 0
    const bytes = this.points.map(({ time, inUse, scratch }) => {
      for (let change = changes[next]; change !== undefined && change.time <= time; change = changes[++next])
        now[change.place] = (now[change.place] ?? 0) + change.bytes
      const known = now.reduce((sum, one) => sum + one, 0)
      const row = [...now]
      row[places.get('scratch') ?? 0] = scratch
      row[places.get('unknown') ?? 0] = Math.max(0, inUse - scratch - known)
      return row
    })
    return { owners, bytes }
  }

  /** Who had memory at a point, the largest first; by default when most was in use. */
  holders(point: number = this.peak): readonly MemoryHolder[] {
    checkCount('MemoryTimeline.holders', arguments, 1)
    const time = this.points[point]?.time ?? NaN
    checkArgument(!Number.isNaN(time), 'MemoryTimeline.holders', 'point', `the number of a point, from 0 to ${this.points.length - 1}`, point)
    const holders = new Map<string, { -readonly [K in keyof MemoryHolder]: MemoryHolder[K] }>()
    for (const { from, to, bytes, ...what } of this.#holdings) {
      if (from > time || to <= time) continue
      const key = JSON.stringify(what)
      const known = holders.get(key)
      if (known === undefined) holders.set(key, { ...what, count: 1, bytes })
      else {
        known.count++
        known.bytes += bytes
      }
    }
    return [...holders.values()].toSorted((a, b) => b.bytes - a.bytes)
  }

  /** What the bytes were for: when most was in use, at most, and at the end; and the largest holders at the peak. */
  table(): string {
    checkCount('MemoryTimeline.table', arguments, 0)
    const { owners, bytes } = this.by('category')
    const at = (point: number, owner: number): number => bytes[point]?.[owner] ?? 0
    const rows = owners
      .map((owner, i) => ({
        owner,
        peak: at(this.peak, i),
        most: bytes.reduce((most, row) => Math.max(most, row[i] ?? 0), 0),
        end: at(bytes.length - 1, i),
      }))
      .filter(({ most }) => most > 0)
      .toSorted((a, b) => b.peak - a.peak || b.most - a.most)
    const holders = this.holders().slice(0, 10)
    return [
      table(
        ['Category', 'At the peak', 'At most', 'At the end'],
        rows.map(({ owner, peak, most, end }) => [owner, ...[peak, most, end].map(sizeText)]),
        { right: [1, 2, 3] },
      ),
      `Peak: ${sizeText(this.points[this.peak]?.inUse ?? 0)} in use`,
      '',
      table(
        ['Largest at the peak', 'Tensors', 'Made by', 'Module', 'Bytes'],
        holders.map((holder) => [holder.category, tensorsText(holder), holder.operator ?? '', holder.module ?? '', sizeText(holder.bytes)]),
        { right: [4] },
      ),
    ].join('\n')
  }

  /** The timeline as a single HTML page, which needs no network: areas over time, and the holders at the peak. PyTorch's `export_memory_timeline`. */
  page(options: { readonly title?: string } = {}): string {
    checkCount('MemoryTimeline.page', arguments, 1)
    checkOptions('MemoryTimeline.page', options, { title: true })
    const { title = 'Memory' } = options
    return dataPage({
      title,
      figures: `at most ${sizeText(this.points[this.peak]?.inUse ?? 0)} in use`,
      tools: `<select id="by" aria-label="Told apart by"><option value="category">by what it is for</option><option value="operator">by operator</option><option value="module">by module</option></select>`,
      body: `<div id="chart" tabindex="0" role="img" aria-label="Bytes in use over time. Arrow keys go from point to point."></div><ul id="legend" class="legend"></ul><h2>Who had memory at the peak</h2><div id="owners" class="owners"></div>`,
      data: {
        page: 'memory',
        times: this.points.map(({ time }) => Number(time.toFixed(4))),
        series: { category: this.by('category'), operator: this.by('operator'), module: this.by('module') },
        peak: this.peak,
        atPeak: this.holders()
          .slice(0, 50)
          .map((holder) => [holder.category, holder.operator ?? '', holder.module ?? '', tensorsText(holder), holder.bytes]),
      },
    })
  }

  toString(): string {
    return this.table()
  }
}

/** `Net.fc.weight: float32 [10, 64]`, `2 x float32 [8, 16]` */
const tensorsText = ({ name, shape, dtype, count }: MemoryHolder): string =>
  `${name === null ? '' : `${name}: `}${count === 1 ? '' : `${count} x `}${dtype ?? ''}${shape === null ? '' : ` ${formatShape(shape)}`}`

/** The first and last point, and in each of equal stretches between them the lowest and the highest. */
function thinned(points: readonly MemoryPoint[]): readonly MemoryPoint[] {
  if (points.length <= MOST_POINTS) return points
  const stretch = Math.ceil(points.length / (MOST_POINTS / 2))
  const kept = new Set<MemoryPoint>(points.slice(0, 1))
  for (let from = 0; from < points.length; from += stretch) {
    const some = points.slice(from, from + stretch).toSorted((a, b) => a.inUse - b.inUse)
    for (const point of [some[0], some.at(-1)]) if (point !== undefined) kept.add(point)
  }
  return points.filter((point, i) => kept.has(point) || i === points.length - 1)
}

/**
 * Runs `fn` some times, and records who has how much memory: every block of a tensor from its allocation to its end, what it is for (a parameter, a gradient, an optimizer's state, an
 * input, an activation that a backward reads, or something temporary), and which operator and module made it. The collector runs often meanwhile, so that dead tensors are soon
 * found: the times are not those of the program, see `profile` for them. In browsers tensors end only between tasks. PyTorch's memory timeline.
 *
 * @throws ArgumentError if `fn` is no function or is async, or an option is wrong. What `fn` throws is thrown on.
 * @example
 * const timeline = memoryTimeline(() => trainStep(), { warmup: 2 })
 * console.log(timeline.table())
 * writeFileSync('memory.html', timeline.page())
 */
export function memoryTimeline(fn: () => unknown, options: MemoryTimelineOptions = {}): MemoryTimeline {
  checkCount('memoryTimeline', arguments, 2)
  checkCallable('memoryTimeline', 'fn', fn)
  checkOptions('memoryTimeline', options, { warmup: 'number', runs: 'number' })
  const { warmup = 1, runs = 1 } = options
  checkTimes('memoryTimeline', 'warmup', warmup, 0)
  checkTimes('memoryTimeline', 'runs', runs, 1)
  return runOf('memoryTimeline', fn, (run) => {
    for (let i = 0; i < warmup; i++) run()
    const recorder = new MemoryRecorder()
    recorder.during(() => {
      for (let i = 0; i < runs; i++) run()
    })
    return new MemoryTimeline(recorder.holdings, recorder.points)
  })
}
