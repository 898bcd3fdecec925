/** What the fuzzer needs of the library. */
export interface HeapApi {
  readonly kernels: typeof import('../../src/entries/kernels.ts')
}

export function fuzzHeap(api: HeapApi, seed: number, steps?: number): void
export function fuzzHeapMany(api: HeapApi, count: number, seed: number): Promise<{ readonly before: number; readonly after: number }>
export function heapApi(load: (entry: string) => Promise<unknown>): Promise<HeapApi>
