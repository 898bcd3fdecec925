// The flame graph of a profile as a single HTML page, which needs no network and no other file. It is drawn by page/flame.ts.
import { sizeText } from '../../protocol/sizeText.ts'
import { timeText } from '../../protocol/timeText.ts'
import { dataPage } from './dataPage.ts'
import type { ProfileEvent } from './event.ts'
import { flameTree } from './flameTree.ts'
import type { FlameFrame } from './flameTree.ts'
import type { PackedFrame } from './page/data.ts'

const round = (value: number): number => Number(value.toPrecision(6))

const pack = ({ name, kind, time, calls, flops, bytes, children }: FlameFrame): PackedFrame => [
  name,
  kind,
  round(time),
  calls,
  round(flops),
  round(bytes),
  children.map(pack),
]

/** The page. `totalTime` in milliseconds. */
export function flamePage(events: readonly ProfileEvent[], title: string, runs: number, totalTime: number): string {
  const peak = events.reduce((most, event) => Math.max(most, event.peak), 0)
  return dataPage({
    title,
    figures: `${timeText(totalTime)} in ${runs} ${runs === 1 ? 'run' : 'runs'}, at most ${sizeText(peak)} in use`,
    tools: `<span class="find"><input id="search" type="search" placeholder="Search  /" aria-label="Search frames" autocomplete="off" spellcheck="false"><span id="hits" role="status"></span></span><button type="button" id="reset" title="Show everything (Esc)">Reset</button>`,
    body: `<div id="flame" role="tree" aria-label="The flame graph"></div><section id="detail" aria-live="polite"></section>`,
    data: { page: 'flame', totalTime: round(totalTime), frames: flameTree(events).map(pack) },
  })
}
