// Lines of the program as texts.
import { element } from '../../../fx/viewer/page/elements/dom.ts'
import type { Place } from '../data.ts'

/** The file without its folders. */
const fileText = ({ file }: Place): string => file.split(/[\\/]/).at(-1) ?? file

/** The file without its folders, and the line. */
export const placeText = (place: Place): string => `${fileText(place)}:${place.line}`

/** The same as elements, of which a narrow screen shows the line. */
export const placeParts = (place: Place): readonly HTMLElement[] => [
  element('span', { class: 'file' }, fileText(place)),
  element('span', {}, `:${place.line}`),
]
