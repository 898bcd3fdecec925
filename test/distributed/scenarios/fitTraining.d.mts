export interface FitRun {
  readonly epochs: readonly Readonly<Record<string, number>>[]
  readonly step: number
  readonly losses: readonly number[]
  readonly parameters: readonly (readonly number[])[]
}
export function trainAll(way: 'alone' | 'ddp' | 'fsdp'): Promise<Readonly<Record<string, FitRun>>>
export function stepsTaken(way: 'alone' | 'ddp' | 'fsdp'): Promise<number>
