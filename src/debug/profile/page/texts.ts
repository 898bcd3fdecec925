// Numbers as pages write them.

const FLOPS = ['FLOPs', 'kFLOPs', 'MFLOPs', 'GFLOPs', 'TFLOPs']

export function flopsText(flops: number): string {
  let [rest, at] = [flops, 0]
  for (; rest >= 1000 && at < FLOPS.length - 1; at++) rest /= 1000
  return `${at === 0 ? rest.toFixed(0) : rest.toFixed(rest < 10 ? 2 : 1)} ${FLOPS[at] ?? ''}`
}

export const shareText = (part: number, whole: number): string => `${((100 * part) / Math.max(whole, Number.MIN_VALUE)).toFixed(1)}%`
