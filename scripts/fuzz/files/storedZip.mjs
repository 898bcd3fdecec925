// Zip archives of entries that are not compressed, as torch.save writes them (without checksums, which nothing reads).

const LOCAL = 0x04034b50
const ENTRY = 0x02014b50
const END = 0x06054b50

/** Bytes after each other. */
export function joined(...parts) {
  return Uint8Array.from(Buffer.concat(parts.map((part) => Uint8Array.from(part))))
}

/** Writes an archive. `entries` are names and contents; a name may be there twice. */
export function storedZip(entries) {
  const parts = []
  const directory = []
  let at = 0
  const short = (n) => [n & 255, n >> 8]
  const word = (n) => [...short(n & 65535), ...short(n >>> 16)]
  const list = Array.isArray(entries) ? entries : Object.entries(entries)
  for (const [name, data] of list) {
    const label = new TextEncoder().encode(name)
    const fields = [...short(0), ...short(0), ...word(0), ...word(0), ...word(data.length), ...word(data.length), ...short(label.length), ...short(0)]
    const head = [...word(LOCAL), ...short(20), ...fields]
    directory.push([...word(ENTRY), ...short(20), ...short(20), ...fields, ...short(0), ...short(0), ...short(0), ...word(0), ...word(at)], label)
    parts.push(head, label, data)
    at += head.length + label.length + data.length
  }
  const count = short(list.length)
  const entriesSize = directory.reduce((size, part) => size + part.length, 0)
  const end = [...word(END), ...short(0), ...short(0), ...count, ...count, ...word(entriesSize), ...word(at), ...short(0)]
  return joined(...parts, ...directory, end)
}

/** The names and contents of an archive that {@link storedZip} wrote. */
export function storedEntries(bytes) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const entries = []
  for (let at = 0; view.getUint32(at, true) === LOCAL;) {
    const size = view.getUint32(at + 18, true)
    const label = at + 30 + view.getUint16(at + 26, true)
    entries.push([new TextDecoder().decode(bytes.subarray(at + 30, label)), bytes.slice(label, label + size)])
    at = label + size
  }
  return entries
}
