// Numbers and lines of the program as texts.
import { element } from '../../../fx/viewer/page/elements/dom.ts'
import type { Place } from '../data.ts'

/** A time in milliseconds: `12.3 ms`, `4.0 s`. */
export function timeText(milliseconds: number): string {
  if (milliseconds >= 10_000) return `${(milliseconds / 1000).toFixed(1)} s`
  if (milliseconds >= 100) return `${milliseconds.toFixed(0)} ms`
  return milliseconds >= 1 ? `${milliseconds.toFixed(1)} ms` : `${(milliseconds * 1000).toFixed(0)} µs`
}

/** The file without its folders. */
const fileText = ({ file }: Place): string => file.split(/[\\/]/).at(-1) ?? file

/** The file without its folders, and the line. */
export const placeText = (place: Place): string => `${fileText(place)}:${place.line}`

/** The same as elements, of which a narrow screen shows the line. */
export const placeParts = (place: Place): readonly HTMLElement[] => [
  element('span', { class: 'file' }, fileText(place)),
  element('span', {}, `:${place.line}`),
]
