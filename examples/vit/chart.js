// Curves as SVG: one or two lines over the steps of a training.

const [WIDTH, HEIGHT, LEFT, BOTTOM, TOP] = [360, 150, 34, 20, 8]

/** Draws `series`, `[{ name, points: [[step, value]] }]`, into an element. The scale begins at 0, and ends at `most`, or where the values end. */
export function drawChart(element, series, most = null) {
  const points = series.flatMap((one) => one.points)
  const lastStep = Math.max(1, ...points.map(([step]) => step))
  const top = most ?? (Math.max(0, ...points.map(([, value]) => value)) * 1.05 || 1)
  const x = (step) => LEFT + (step / lastStep) * (WIDTH - LEFT - 6)
  const y = (value) => TOP + (1 - value / top) * (HEIGHT - TOP - BOTTOM)
  const line = ({ name, points: own }) => {
    const path = own.map(([step, value], i) => `${i === 0 ? 'M' : 'L'}${x(step).toFixed(1)} ${y(value).toFixed(1)}`).join('')
    return `<path class="line ${name}" d="${path}" /><circle class="dot ${name}" cx="${x(own.at(-1)?.[0] ?? 0)}" cy="${y(own.at(-1)?.[1] ?? 0)}" r="${own.length > 0 ? 3 : 0}" />`
  }
  const ticks = [0, top / 2, top].map(
    (value) =>
      `<line class="grid" x1="${LEFT}" x2="${WIDTH - 6}" y1="${y(value)}" y2="${y(value)}" /><text x="${LEFT - 5}" y="${y(value) + 4}" text-anchor="end">${Number(value.toPrecision(2))}</text>`,
  )
  const legend = series
    .filter((one) => one.points.length > 0)
    .map(({ name, points: own }) => `<span class="${name}">${name} ${own.at(-1)[1].toFixed(3)}</span>`)
  element.innerHTML = `<svg viewBox="0 0 ${WIDTH} ${HEIGHT}" role="img">${ticks.join('')}${series.map(line).join('')}<text x="${WIDTH - 6}" y="${HEIGHT - 5}" text-anchor="end">step ${lastStep}</text></svg><p class="legend">${legend.join('')}</p>`
}
