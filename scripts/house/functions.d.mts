export const LIMITS: { readonly lines: number; readonly parameters: number }
/** A function of a source text. */
export interface FoundFunction {
  readonly name: string
  readonly line: number
  readonly lines: number
  readonly parameters: number
}
/** A function of src, with its file: `file:name`. */
export interface KeyedFunction extends FoundFunction {
  readonly key: string
}
export function functionsIn(text: string): readonly FoundFunction[]
export function aboveLimits(src: string): { readonly lines: readonly KeyedFunction[]; readonly parameters: readonly KeyedFunction[] }
