// What several views of the page are made of: lines of the program, and lists of facts.
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

/** A line of the program: where it is, and its text. */
export const sourceParts = (place: Place): readonly HTMLElement[] => [
  element('code', {}, placeText(place)),
  ...(place.code === null ? [] : [element('code', { class: 'source' }, place.code)]),
]

/** The same behind something that comes from there; null if the line is not known. */
export const whereView = (place: Place | undefined): HTMLElement | null =>
  place === undefined ? null : element('span', { class: 'where' }, ' ', sourceParts(place))

/** Names, and what each stands for. */
export const factList = (
  facts: readonly (readonly [name: string, text: string | readonly (string | HTMLElement | null)[]])[],
  attributes: Readonly<Record<string, string>> = {},
): HTMLElement =>
  element(
    'dl',
    attributes,
    facts.flatMap(([name, text]) => [element('dt', {}, name), element('dd', {}, text)]),
  )
