/** What the formats use of the package: the exports of its entries. */
export type Api = object
export interface Finding {
  readonly format: string
  readonly seed: number
  readonly index: number
  readonly problem: string
  readonly bytes: Uint8Array
  readonly watch: Watch
}
export interface Figures {
  readonly accepted: number
  readonly refused: number
  readonly findings: number
  readonly slowest: number
  readonly largest: number
}
/** The mutant of a number. */
export function mutantOf(seeds: readonly Uint8Array[], format: string, seed: number, index: number): Uint8Array
export class Watch {
  constructor(api: Api)
  effects(): string | null
  changes(): string | null
  end(): void
}
export function judge(
  api: Api,
  watch: Watch,
  format: string,
  bytes: Uint8Array,
  options?: { readonly measure?: boolean; readonly quick?: boolean },
): { readonly problem: string | null; readonly accepted: boolean; readonly ms: number; readonly grown: number }
export function fuzz(
  api: Api,
  format: string,
  options: { readonly count: number; readonly seed: number; readonly from?: number; readonly onFinding: (finding: Finding) => void },
): Promise<Figures>
export function minimize(api: Api, finding: Finding, budget?: number): Uint8Array
