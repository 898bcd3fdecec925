// The page: images are dropped onto it, a ViT learns their classes in a worker, and the model is saved in the browser, downloaded, and read again.
import { drawChart } from './chart.js'
import { divided, droppedFiles, samplesOf } from './images.js'

const worker = new Worker(new URL('./worker.js', import.meta.url), { type: 'module' })
const FILE = 'vit.safetensors'
const element = (id) => document.getElementById(id)

const waiting = new Map()
/** Asks the worker for something, and waits for its answer. */
const ask = (command, values = {}) =>
  new Promise((resolve, reject) => {
    const id = waiting.size === 0 ? 1 : Math.max(...waiting.keys()) + 1
    waiting.set(id, { resolve, reject })
    worker.postMessage({ id, command, ...values })
  })

const noCurves = () => ({ training: [], validation: [], accuracy: [], validationAccuracy: [] })
const state = { labels: [], samples: [], files: [], curves: noCurves(), isTraining: false, hasModel: false, right: null }

worker.addEventListener('message', ({ data }) => {
  if (data.kind === 'report') return addReport(data)
  const { resolve, reject } = waiting.get(data.id)
  waiting.delete(data.id)
  if (data.error === undefined) resolve(data.value)
  else reject(new Error(data.error))
})
worker.addEventListener('error', ({ message }) => say(message, true))

function say(text, isError = false) {
  element('status').textContent = text
  element('status').classList.toggle('error', isError)
}

/** Runs what a button does, and says what went wrong. */
const doing = async (what) => {
  try {
    await what()
  } catch (error) {
    say(error.message, true)
  }
  update()
}

function update() {
  const { validation } = divided(state.samples)
  element('train').disabled = state.isTraining || state.labels.length < 2
  for (const id of ['save', 'download']) element(id).disabled = state.isTraining || !state.hasModel
  element('load').disabled = state.isTraining
  if (state.samples.length > 0)
    element('summary').textContent =
      `${state.right === null ? '' : `${state.right} right of `}${state.samples.length} images of ${state.labels.length} ${state.labels.length === 1 ? 'class; drop those of another one' : 'classes'}, ${validation.length} for validation`
}

/** Shows each image with its class. */
function showImages() {
  const grid = element('images')
  for (const { src } of grid.querySelectorAll('img')) URL.revokeObjectURL(src)
  grid.replaceChildren(
    ...state.samples.map(({ file, label }) => {
      const figure = document.createElement('figure')
      const image = Object.assign(document.createElement('img'), { src: URL.createObjectURL(file), alt: file.name })
      const caption = Object.assign(document.createElement('figcaption'), { textContent: state.labels[label] })
      figure.append(image, caption)
      return figure
    }),
  )
}

/** Shows under each image what the model takes it for. */
async function showPredictions() {
  if (state.samples.length === 0) return
  const predictions = await ask('predict', { files: state.samples.map(({ file }) => file) })
  let right = 0
  for (const [i, figure] of [...element('images').children].entries()) {
    const { label, probability } = predictions[i]
    const isRight = label === state.labels[state.samples[i].label]
    if (isRight) right++
    figure.className = isRight ? 'right' : 'wrong'
    figure.querySelector('figcaption').textContent = `${label} ${Math.round(100 * probability)}%`
  }
  state.right = right
}

function addReport({ step, report }) {
  const { curves } = state
  if ('validation/loss' in report || 'accuracy' in report) {
    if ('validation/loss' in report) curves.validation.push([step, report['validation/loss']])
    if ('accuracy' in report) curves.accuracy.push([step, report.accuracy])
    if ('validation/accuracy' in report) curves.validationAccuracy.push([step, report['validation/accuracy']])
  } else if ('loss' in report) curves.training.push([step, report.loss])
  draw()
}

function draw() {
  const { training, validation, accuracy, validationAccuracy } = state.curves
  drawChart(element('loss'), [
    { name: 'training', points: training },
    { name: 'validation', points: validation },
  ])
  drawChart(
    element('accuracy'),
    [
      { name: 'training', points: accuracy },
      { name: 'validation', points: validationAccuracy },
    ],
    1,
  )
}

/** What a model is, in a line. */
const modelText = ({ labels, parameters, imageSize }) =>
  `${parameters.toLocaleString('en')} parameters, images of ${imageSize}x${imageSize}, classes: ${labels.join(', ')}`

async function train() {
  state.isTraining = true
  state.curves = noCurves()
  say('Training …')
  update()
  try {
    const epochs = Number(element('epochs').value)
    const made = await ask('train', { samples: state.samples, labels: state.labels, epochs, seed: 1 })
    state.hasModel = true
    await showPredictions()
    say(`Trained: ${modelText(made)}`)
  } finally {
    state.isTraining = false
  }
}

const folder = () => navigator.storage.getDirectory()

async function save() {
  const blob = await ask('save')
  const file = await (await folder()).getFileHandle(FILE, { create: true })
  const stream = await file.createWritable()
  await stream.write(blob)
  await stream.close()
  say(`Saved ${Math.round(blob.size / 1024)} KB in this browser.`)
}

async function download() {
  const link = Object.assign(document.createElement('a'), { href: URL.createObjectURL(await ask('save')), download: FILE })
  link.click()
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000)
}

/** Reads a model: files that were dropped, or the one that was saved. */
async function load(files) {
  const source = files ?? (await savedFile())
  if (source === null) return say('Nothing has been saved in this browser yet.', true)
  const loaded = await ask('load', { source })
  state.hasModel = true
  if (loaded.labels.length > 0) await showPredictions()
  say(`Loaded: ${modelText(loaded)}`)
}

const savedFile = async () =>
  (await folder())
    .getFileHandle(FILE)
    .then((handle) => handle.getFile())
    .catch(() => null)

/** Takes files: images to learn from, a model (a file of this page, or config.json and model.safetensors). */
async function take(files) {
  const weights = files.filter(({ path }) => path.endsWith('.safetensors')).map(({ file }) => file)
  const config = files.filter(({ path }) => path.endsWith('config.json')).map(({ file }) => file)
  if (weights.length > 0) return load(config.length > 0 ? [...config, ...weights] : weights[0])
  const known = new Set(state.files.map(({ path }) => path))
  state.files = [...state.files, ...files.filter(({ path }) => !known.has(path))]
  Object.assign(state, samplesOf(state.files))
  if (state.samples.length === 0) return say('There are no images among these files.', true)
  state.right = null
  showImages()
  say('')
}

const zone = element('zone')
for (const name of ['dragover', 'dragleave', 'drop'])
  addEventListener(name, (event) => {
    event.preventDefault()
    zone.classList.toggle('over', name === 'dragover')
  })
addEventListener('drop', ({ dataTransfer }) => doing(async () => take(await droppedFiles(dataTransfer.items))))
element('files').addEventListener('change', ({ target }) =>
  doing(() => take([...target.files].map((file) => ({ file, path: file.webkitRelativePath || file.name })))),
)
element('train').addEventListener('click', () => doing(train))
element('save').addEventListener('click', () => doing(save))
element('download').addEventListener('click', () => doing(download))
element('load').addEventListener('click', () => doing(() => load(null)))
update()
draw()
