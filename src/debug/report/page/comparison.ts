// Two runs in numbers: what each has, and by how much they differ.
import { element } from '../../../fx/viewer/page/elements/dom.ts'
import type { Report, Totals } from '../data.ts'
import { sizeText } from '../../../protocol/sizeText.ts'
import { timeText } from '../../../protocol/timeText.ts'

interface Figure {
  readonly name: string
  readonly of: (totals: Totals) => number
  readonly text: (value: number) => string
}

const count = (value: number): string => String(value)
const FIGURES: readonly Figure[] = [
  { name: 'calls', of: ({ calls }) => calls, text: count },
  { name: 'hits', of: ({ hits }) => hits, text: count },
  { name: 'graphs', of: ({ graphs }) => graphs, text: count },
  { name: 'breaks', of: ({ breaks }) => breaks, text: count },
  { name: 'recompiles', of: ({ recompiles }) => recompiles, text: count },
  { name: 'failures', of: ({ failures }) => failures, text: count },
  { name: 'compiling', of: ({ compileMilliseconds }) => compileMilliseconds, text: timeText },
  { name: 'in calls', of: ({ callMilliseconds }) => callMilliseconds, text: timeText },
  { name: 'in kernels', of: ({ kernelMilliseconds }) => kernelMilliseconds, text: timeText },
  { name: 'kernels', of: ({ kernels }) => kernels, text: count },
  { name: 'from the cache', of: ({ cachedKernels }) => cachedKernels, text: count },
  { name: 'largest arena', of: ({ arenaBytes }) => arenaBytes, text: sizeText },
]

/** The numbers of a run, beside those of another one if there is one. */
export function totalsView({ totals }: Report, other: Report | null): HTMLElement {
  return element(
    'dl',
    { class: other === null ? 'totals' : 'totals compared' },
    FIGURES.map(({ name, of, text }) => {
      const [value, was] = [of(totals), other === null ? null : of(other.totals)]
      const change = was === null || was === value ? null : was === 0 ? 'new' : `${value > was ? '+' : ''}${Math.round((100 * (value - was)) / was)}%`
      const isBad = (name === 'breaks' || name === 'recompiles' || name === 'failures') && value > 0
      return element(
        'div',
        { class: isBad ? 'bad' : '' },
        element('dt', {}, name),
        element(
          'dd',
          {},
          text(value),
          was === null ? null : element('span', { class: 'label' }, ` was ${text(was)}`),
          change === null ? null : element('b', {}, ` ${change}`),
        ),
      )
    }),
  )
}
