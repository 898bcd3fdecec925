export function storedZip(entries: Readonly<Record<string, Uint8Array>> | readonly (readonly [name: string, data: Uint8Array])[]): Uint8Array
export function storedEntries(bytes: Uint8Array): [name: string, data: Uint8Array][]
