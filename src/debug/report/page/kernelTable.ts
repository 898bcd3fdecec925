// The kernels of a graph: how long they take, how fast that is, and their loops.
import { element } from '../../../fx/viewer/page/elements/dom.ts'
import { VirtualList } from '../../../fx/viewer/page/elements/virtualList.ts'
import type { KernelFacts, Peak, Report } from '../data.ts'
import { sourceParts } from './parts.ts'
import { timeText } from '../../../protocol/timeText.ts'

/** How fast a kernel is at best; null for what is not known. */
export interface Speed {
  readonly gflops: number | null
  readonly gigabytesPerSecond: number | null
  /** The time that the machine needs at its peaks, divided by the time that the kernel takes. */
  readonly share: number | null
}

export function speedOf({ runs, least, flops, bytes }: KernelFacts, peak: Peak | null): Speed {
  if (runs === 0 || least <= 0) return { gflops: null, gigabytesPerSecond: null, share: null }
  const perSecond = (amount: number): number => amount / (least * 1e6)
  const gflops = flops === null ? null : perSecond(flops)
  const gigabytesPerSecond = perSecond(bytes)
  const share = peak === null ? null : Math.max((gflops ?? 0) / peak.gflops, gigabytesPerSecond / peak.gigabytesPerSecond)
  return { gflops, gigabytesPerSecond, share }
}

/** The table, slowest first. The text of a kernel is shown when it is chosen. */
export function kernelTable(kernels: readonly KernelFacts[], { places, texts, peak }: Report): HTMLElement {
  const sorted = kernels.toSorted((a, b) => b.milliseconds - a.milliseconds)
  const [box, text] = [element('div', { class: 'kernels' }), element('pre', { class: 'kernel-text' })]
  let chosen: KernelFacts | undefined
  const choose = (kernel: KernelFacts | undefined): void => {
    chosen = kernel
    text.textContent = kernel === undefined ? '' : (texts[kernel.text] ?? '')
    list.draw()
  }
  const line = (i: number): HTMLElement => {
    const kernel = sorted[i]
    if (kernel === undefined) return element('div')
    const { name, type, engine, places: at, runs, milliseconds, isCached, compileMilliseconds } = kernel
    const { gflops, gigabytesPerSecond, share } = speedOf(kernel, peak)
    const figures = [
      runs === 0 ? 'not timed' : `${timeText(milliseconds)} in ${runs} ${runs === 1 ? 'run' : 'runs'}`,
      gflops === null || gflops === 0 ? null : `${gflops.toPrecision(3)} GFLOP/s`,
      gigabytesPerSecond === null ? null : `${gigabytesPerSecond.toPrecision(3)} GB/s`,
      share === null ? null : `${Math.round(100 * share)}% of peak`,
      type === 'extern' ? 'eager kernel' : isCached ? 'cache hit' : `compiled in ${timeText(compileMilliseconds)}`,
    ]
    const [first] = at.flatMap((place) => places[place] ?? [])
    const made = element(
      'div',
      { class: kernel === chosen ? 'kernel current' : 'kernel', 'data-kernel': name, role: 'button', tabindex: '0' },
      element('div', {}, element('b', {}, name), element('span', { class: 'label' }, ` ${type} · ${engine}`)),
      element('div', { class: 'where' }, first === undefined ? 'unknown line' : sourceParts(first)),
      element('div', { class: 'label' }, figures.filter((figure) => figure !== null).join(' · ')),
    )
    made.addEventListener('click', () => choose(kernel))
    made.addEventListener('keydown', (event) => {
      if (event.key === 'Enter') choose(kernel)
    })
    return made
  }
  const list: VirtualList = new VirtualList(
    box,
    { count: sorted.length, height: matchMedia('(max-width: 760px)').matches ? 84 : 66, line },
    'kernel-lines',
  )
  choose(sorted[0])
  return element('div', { class: 'kernel-view' }, box, text)
}
