export interface Example {
  /** Line of the page, from 1. */
  readonly line: number
  readonly language: 'js' | 'ts'
  readonly code: string
  /** The output that the page states; null when it states none. */
  readonly text: string | null
  /** From where to where in the page that text stands; both the end of the code when there is none. */
  readonly textAt: readonly [number, number]
  /** Code of the blocks that this one continues, in order. */
  readonly before: readonly string[]
}
export const pages: readonly string[]
export const ERROR_EXAMPLE: RegExp
export const ERROR_WITHOUT_EXAMPLE: RegExp
export function pageText(name: string): string
export function examplesOf(page: string): Example[]
export function withoutTypes(code: string): string
export const STRICT: Readonly<Record<string, unknown>>
