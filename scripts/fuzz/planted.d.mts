export interface PlantedFault {
  readonly name: string
  readonly kinds?: string
  readonly file: string
  readonly from: string
  readonly to: string
}
export const faults: readonly PlantedFault[]
export function planted(fault: PlantedFault, source: string): string
