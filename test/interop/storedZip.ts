// Writes a zip archive of entries that are not compressed, as torch.save does (without checksums, which nothing reads).

export function storedZip(entries: Readonly<Record<string, Uint8Array>>): Uint8Array {
  const parts: number[] = []
  const directory: number[] = []
  const short = (n: number): number[] => [n & 255, n >> 8]
  const word = (n: number): number[] => [...short(n & 65535), ...short(n >>> 16)]
  for (const [name, data] of Object.entries(entries)) {
    const label = [...new TextEncoder().encode(name)]
    const fields = [...short(0), ...short(0), ...word(0), ...word(0), ...word(data.length), ...word(data.length), ...short(label.length), ...short(0)]
    directory.push(
      ...word(0x02014b50),
      ...short(20),
      ...short(20),
      ...fields,
      ...short(0),
      ...short(0),
      ...short(0),
      ...word(0),
      ...word(parts.length),
      ...label,
    )
    parts.push(...word(0x04034b50), ...short(20), ...fields, ...label, ...data)
  }
  const count = short(Object.keys(entries).length)
  return Uint8Array.from([
    ...parts,
    ...directory,
    ...word(0x06054b50),
    ...short(0),
    ...short(0),
    ...count,
    ...count,
    ...word(directory.length),
    ...word(parts.length),
    ...short(0),
  ])
}
