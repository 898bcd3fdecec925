/** The names of the package that programs and faulty backends use. */
export type FaultApi = Readonly<Record<string, unknown>>

export function loadApi(load: (name: string) => Promise<unknown>): Promise<FaultApi>
