export const formats: Readonly<
  Record<string, { readonly seeds: (api: object) => readonly Uint8Array[]; readonly read: (api: object, bytes: Uint8Array) => void }>
>
