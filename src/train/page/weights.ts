// The table of parameters: norms, and a histogram of the values of each.
import type { WeightRow } from './data.ts'
import { shortNumber } from '../shortNumber.ts'

const [WIDTH, HEIGHT] = [160, 32]

function histogram({ counts, from, to }: WeightRow): string {
  const most = Math.max(1, ...counts)
  const bar = WIDTH / counts.length
  const bars = counts.map((count, i) => {
    const height = (HEIGHT * count) / most
    return `<rect x="${(i * bar).toFixed(1)}" y="${(HEIGHT - height).toFixed(1)}" width="${Math.max(0.5, bar - 0.6).toFixed(1)}" height="${height.toFixed(1)}"></rect>`
  })
  const label = `values from ${shortNumber(from)} to ${shortNumber(to)}`
  return `<svg viewBox="0 0 ${WIDTH} ${HEIGHT}" role="img" aria-label="${label}" preserveAspectRatio="none">${bars.join('')}</svg>`
}

/** Draws the rows into the body of the table. Names come from a program, so that they are set as texts. */
export function showWeights(body: HTMLElement, rows: readonly WeightRow[]): void {
  body.replaceChildren(
    ...rows.map((row) => {
      const line = document.createElement('tr')
      const texts = [row.name, `[${row.shape.join(', ')}]`, shortNumber(row.norm), row.gradNorm === null ? '–' : shortNumber(row.gradNorm)]
      for (const text of texts) line.insertCell().textContent = text
      const range = line.insertCell()
      range.className = 'values'
      range.innerHTML = histogram(row)
      const ends = document.createElement('span')
      ends.textContent = `${shortNumber(row.from)} … ${shortNumber(row.to)}`
      range.append(ends)
      return line
    }),
  )
}
