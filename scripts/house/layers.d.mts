export interface Layer {
  readonly place: string
  readonly holds: string
  readonly imports: readonly string[]
}
export const layers: readonly Layer[]
export function placeOf(path: string): string | undefined
export function mayImport(from: string, to: string): boolean
export function layerTable(): string[]
