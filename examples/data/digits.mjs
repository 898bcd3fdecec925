// The digits as typed arrays. Works in Node and in browsers: give it the bytes of digits.csv.gz.

/** @typedef {{ images: Float32Array, labels: Int32Array, count: number }} Split  images: count x 64 values in 0..1 */

/**
 * Reads the data set and splits it: every fifth digit is for testing.
 * @param {BufferSource} gzipped bytes of digits.csv.gz
 * @returns {Promise<{ train: Split, test: Split }>}
 */
export async function readDigits(gzipped) {
  return parseDigits(await new Response(new Blob([gzipped]).stream().pipeThrough(new DecompressionStream('gzip'))).text())
}

/**
 * The same from the text of the file.
 * @param {string} text
 * @returns {{ train: Split, test: Split }}
 */
export function parseDigits(text) {
  const rows = text
    .trim()
    .split('\n')
    .filter((line) => /^\d/.test(line))
    .map((line) => line.split(',').map(Number))
  const split = (/** @type {number[][]} */ part) => ({
    images: Float32Array.from(part.flatMap((row) => row.slice(0, 64).map((pixel) => pixel / 16))),
    labels: Int32Array.from(part.map((row) => row[64] ?? 0)),
    count: part.length,
  })
  return { train: split(rows.filter((_, i) => i % 5 !== 0)), test: split(rows.filter((_, i) => i % 5 === 0)) }
}
