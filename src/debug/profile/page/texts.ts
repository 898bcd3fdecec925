// Numbers as pages write them.

const scaled = (value: number, base: number, units: readonly string[]): string => {
  let [rest, at] = [value, 0]
  for (; rest >= base && at < units.length - 1; at++) rest /= base
  return `${at === 0 ? rest.toFixed(0) : rest.toFixed(rest < 10 ? 2 : 1)} ${units[at] ?? ''}`
}

export const bytesText = (bytes: number): string => scaled(bytes, 1024, ['bytes', 'KiB', 'MiB', 'GiB', 'TiB'])
export const flopsText = (flops: number): string => scaled(flops, 1000, ['FLOPs', 'kFLOPs', 'MFLOPs', 'GFLOPs', 'TFLOPs'])
export const timeText = (milliseconds: number): string =>
  milliseconds >= 1000
    ? `${(milliseconds / 1000).toFixed(2)} s`
    : milliseconds >= 1
      ? `${milliseconds.toFixed(2)} ms`
      : `${(milliseconds * 1000).toFixed(1)} µs`
export const shareText = (part: number, whole: number): string => `${((100 * part) / Math.max(whole, Number.MIN_VALUE)).toFixed(1)}%`
