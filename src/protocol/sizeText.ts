// Sizes in memory as texts. Pages use it too, so it imports nothing.

/** `512.0 MiB` */
export function sizeText(bytes: number): string {
  const units = ['KiB', 'MiB', 'GiB', 'TiB']
  if (bytes < 1024) return `${bytes} bytes`
  let value = bytes
  let unit = -1
  for (; value >= 1024 && unit < units.length - 1; unit++) value /= 1024
  return `${value.toFixed(1)} ${units[unit] ?? ''}`
}
