// The live page of a training: listens to the server, and draws what it says.
import { byId } from '../../fx/viewer/page/elements/dom.ts'
import { Chart } from './chart.ts'
import type { Line } from './chart.ts'
import { pointOf } from './data.ts'
import type { EpochPoint, RunFacts, StepPoint } from './data.ts'
import { shortNumber } from '../shortNumber.ts'
import { byteText, clockText } from './numbers.ts'
import { showWeights } from './weights.ts'

const facts: RunFacts = JSON.parse(byId('data', HTMLScriptElement).textContent)
const steps: StepPoint[] = []
const epochs: EpochPoint[] = []
const charts = new Map<string, Chart>()

/** Titles of what steps report, and how their values are written. */
const KNOWN: Readonly<Record<string, readonly [title: string, format: (value: number) => string]>> = {
  loss: ['Loss', shortNumber],
  gradNorm: ['Norm of gradients', shortNumber],
  learningRate: ['Learning rate', shortNumber],
  samplesPerSecond: ['Samples per second', shortNumber],
  memory: ['Memory', byteText],
}
/** What epochs report that steps have too, or that is no curve. */
const LEFT_OUT = new Set(['seconds', 'samplesPerSecond', 'dataWait'])
const VALIDATION = 'validation/'

function chartOf(name: string): Chart {
  const known = charts.get(name)
  if (known !== undefined) return known
  const [title, format] = KNOWN[name] ?? [name, shortNumber]
  const chart = new Chart(title, format)
  charts.set(name, chart)
  const order = [...Object.keys(KNOWN).slice(0, 1), ...[...charts.keys()].filter((key) => KNOWN[key] === undefined), ...Object.keys(KNOWN).slice(1)]
  byId('charts', HTMLElement).replaceChildren(...order.flatMap((key) => charts.get(key)?.element ?? []))
  return chart
}

/** A running mean whose reach grows with the number of points. */
function smoothed(points: Line['points']): Line['points'] {
  const decay = 1 - 1 / Math.max(1, points.length / 25)
  let [sum, weight] = [0, 0]
  return points.map(([step, value]) => {
    if (Number.isFinite(value)) [sum, weight] = [decay * sum + value, decay * weight + 1]
    return [step, sum / weight] as const
  })
}

function draw(): void {
  const names = new Set(steps.flatMap(({ values }) => Object.keys(values)))
  for (const { values } of epochs) for (const name of Object.keys(values)) if (!LEFT_OUT.has(name)) names.add(name.replace(VALIDATION, ''))
  for (const name of names) {
    const points = steps.flatMap(({ step, values }) => (values[name] === undefined ? [] : [[step, values[name]] as const]))
    const ofEpochs = (key: string): Line['points'] =>
      epochs.flatMap(({ step, values }) => (values[key] === undefined ? [] : [[step, values[key]] as const]))
    const lines: Line[] =
      points.length > 0
        ? [
            { name: 'training', tone: 'train', points, isMarked: false },
            ...(name === 'loss' && points.length > 50
              ? [{ name: 'training', tone: 'smooth' as const, points: smoothed(points), isMarked: false }]
              : []),
          ]
        : [{ name: 'training', tone: 'train', points: ofEpochs(name), isMarked: true }]
    lines.push({ name: 'validation', tone: 'validation', points: ofEpochs(VALIDATION + name), isMarked: true })
    chartOf(name).draw(name in KNOWN && name !== 'loss' ? lines.map((line) => ({ ...line, name: '' })) : lines)
  }
}

function showFigures(): void {
  const last = steps.at(-1)
  if (last === undefined) return
  const { epoch, done, step, seconds, values } = last
  const passed = epoch - 1 + (done ?? 0)
  const began = (steps[0]?.epoch ?? 1) - 1 + (steps[0]?.done ?? 0)
  const left = done === null || passed <= began ? '' : clockText(((seconds - (steps[0]?.seconds ?? 0)) / (passed - began)) * (facts.epochs - passed))
  const figures: readonly (readonly [string, string])[] = [
    ['epoch', `${epoch} of ${facts.epochs}`],
    ['step', String(step)],
    ['loss', shortNumber(values['loss'] ?? NaN)],
    ['samples/s', shortNumber(values['samplesPerSecond'] ?? NaN)],
    ['memory', byteText(values['memory'] ?? 0)],
    ['passed', clockText(seconds)],
    ['left', isOver ? '–' : left || '–'],
  ]
  byId('figures', HTMLElement).replaceChildren(
    ...figures.flatMap(([name, value]) => {
      const pair = document.createElement('div')
      const [term, text] = [document.createElement('dt'), document.createElement('dd')]
      term.textContent = name
      text.textContent = value
      pair.append(term, text)
      return [pair]
    }),
  )
  byId('progress', HTMLProgressElement).value = isOver ? 1 : passed / facts.epochs
}

let isOver = false
let isDue = false

/** Draws once a frame at most. */
function drawSoon(): void {
  if (isDue) return
  isDue = true
  requestAnimationFrame(() => {
    isDue = false
    draw()
    showFigures()
  })
}

function say(state: string, text: string): void {
  const badge = byId('state', HTMLElement)
  badge.className = state
  badge.textContent = text
}

const source = new EventSource('events')
source.addEventListener('open', () => {
  // The server tells everything again to each listener.
  steps.length = 0
  epochs.length = 0
  say('running', 'training')
})
source.addEventListener('error', () => {
  if (!isOver) say('lost', 'no connection')
})
source.addEventListener('message', ({ data }: MessageEvent<string>) => {
  const point = pointOf(data)
  if (point.kind === 'step') steps.push(point)
  else if (point.kind === 'epoch') epochs.push(point)
  else if (point.kind === 'weights') {
    byId('weights', HTMLElement).hidden = false
    byId('weightsStep', HTMLElement).textContent = `at step ${point.step}`
    showWeights(byId('rows', HTMLElement), point.rows)
  } else {
    isOver = true
    source.close()
    say(point.text === 'done' ? 'done' : 'lost', point.text)
  }
  drawSoon()
})
