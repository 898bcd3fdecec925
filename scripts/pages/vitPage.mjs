// Drives the page of examples/vit: images drawn here are dropped onto it, a ViT learns them, is saved, and is read again by a page that was loaded anew. Chromium decodes a file as Node does.
// Part of npm run test:browser.
import { mkdirSync, readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import { torch } from 'tensorfx'
import { decodeImage } from 'tensorfx/vision'

const example = (name) => fileURLToPath(new URL(`../../examples/vit/${name}`, import.meta.url))
const photograph = fileURLToPath(new URL('../../test/goldens/vision/turned.jpg', import.meta.url))
const DECODE = `import { decodeImage } from 'tensorfx/vision'
globalThis.decode = async (text) => {
  const image = await decodeImage(new Blob([Uint8Array.from(atob(text), (c) => c.charCodeAt(0))]))
  return { shape: image.shape, values: image.flatten().toArray() }
}`

/** The page, its worker and a program that decodes, as bundles by their addresses. */
async function bundles() {
  const options = { bundle: true, format: 'esm', platform: 'browser', write: false, logLevel: 'error', tsconfigRaw: {} }
  const [pages, decode] = await Promise.all([
    build({ ...options, entryPoints: [example('page.js'), example('worker.js')], outdir: '/' }),
    build({ ...options, stdin: { contents: DECODE, resolveDir: fileURLToPath(new URL('../..', import.meta.url)) }, outfile: '/decode.js' }),
  ])
  return new Map([...pages.outputFiles, ...decode.outputFiles].map(({ path, contents }) => [path, contents]))
}

/** Draws images of three classes in the page, and drops them: half are PNG, half JPEG. */
const dropImages = (count) => {
  const draw = {
    stripes: (context, step) => {
      for (let x = 0; x < 48; x += 2 * step) context.fillRect(x, 0, step, 48)
    },
    bars: (context, step) => {
      for (let y = 0; y < 48; y += 2 * step) context.fillRect(0, y, 48, step)
    },
    disc: (context, step) => {
      context.beginPath()
      context.arc(20 + step, 24, 8 + step, 0, 7)
      context.fill()
    },
  }
  const fileOf = async (name, i) => {
    const canvas = new OffscreenCanvas(48, 48)
    const context = canvas.getContext('2d')
    context.fillStyle = `hsl(${(i * 67) % 360} 60% 85%)`
    context.fillRect(0, 0, 48, 48)
    context.fillStyle = `hsl(${(i * 131 + 90) % 360} 70% 35%)`
    draw[name](context, 3 + (i % 4))
    const [type, end] = i % 2 === 0 ? ['image/png', 'png'] : ['image/jpeg', 'jpg']
    return new File([await canvas.convertToBlob({ type })], `${name}-${String(i).padStart(2, '0')}.${end}`, { type })
  }
  return (async () => {
    const transfer = new DataTransfer()
    for (const name of Object.keys(draw)) for (let i = 0; i < count; i++) transfer.items.add(await fileOf(name, i))
    globalThis.dispatchEvent(new DragEvent('drop', { dataTransfer: transfer, cancelable: true }))
  })()
}

const captions = (page) => page.$$eval('figcaption', (all) => all.map(({ textContent }) => textContent))
const statusOf = (page) => page.textContent('#status')

/** Waits until the status begins with a text; what it says instead is the error. */
async function waitFor(page, begin) {
  await page.waitForFunction(
    (text) => {
      const status = document.getElementById('status')
      return status.textContent.startsWith(text) || status.classList.contains('error')
    },
    begin,
    { timeout: 120_000 },
  )
  const text = await statusOf(page)
  if (!text.startsWith(begin)) throw new Error(`the page says: ${text}`)
  return text
}

/** Returns the number of failures. Leaves pictures of the page in `folder`. */
export async function checkVitPage(browser, folder) {
  mkdirSync(folder, { recursive: true })
  let failures = 0
  const check = (ok, text) => {
    if (!ok) failures++
    console.log(`${ok ? 'ok    ' : 'FAILED'} ViT page: ${text}`)
  }
  const files = await bundles()
  const server = createServer(({ url }, response) => {
    const script = files.get(url)
    response.setHeader('content-type', script === undefined ? 'text/html' : 'text/javascript')
    response.end(script ?? (url === '/' ? readFileSync(example('index.html')) : ''))
  })
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = `http://127.0.0.1:${server.address().port}/`
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, acceptDownloads: true })
  try {
    const page = await context.newPage()
    page.on('pageerror', ({ message }) => check(false, message))
    await page.goto(address)
    await page.evaluate(dropImages, 12)
    await page.waitForSelector('figure:nth-child(36)')
    check((await page.textContent('#summary')) === '36 images of 3 classes, 9 for validation', 'images that were dropped have their classes')
    await page.fill('#epochs', '30')
    const start = Date.now()
    await page.click('#train')
    const trained = await waitFor(page, 'Trained:')
    const seconds = (Date.now() - start) / 1000
    const before = await captions(page)
    const right = await page.$$eval('figure.right', ({ length }) => length)
    check(right >= 30, `after 30 epochs it names ${right} of 36 images right (${seconds.toFixed(1)} s)`)
    const lines = await page.$$eval('path.line', (all) => all.map((path) => path.getAttribute('d').split(/[ML]/).length - 1))
    check(lines[0] >= 60 && lines.slice(1).every((points) => points === 30), `curves of ${lines.join(', ')} points`)
    await page.screenshot({ path: `${folder}/vit-1280.png`, fullPage: true })
    await page.click('#save')
    await waitFor(page, 'Saved')
    const [download] = await Promise.all([page.waitForEvent('download'), page.click('#download')])
    const saved = readFileSync(await download.path())
    check(download.suggestedFilename() === 'vit.safetensors' && saved.length > 100_000, `the download has ${saved.length} bytes`)

    // Another visit, on a phone: what was saved is there, and computes the same.
    const later = await context.newPage()
    later.on('pageerror', ({ message }) => check(false, message))
    await later.setViewportSize({ width: 390, height: 844 })
    await later.goto(address)
    await later.evaluate(dropImages, 12)
    await later.waitForSelector('figure:nth-child(36)')
    await later.click('#load')
    const loaded = await waitFor(later, 'Loaded:')
    check(loaded.slice(8) === trained.slice(9), 'the saved model has its sizes and classes')
    check((await captions(later)).join() === before.join(), 'the saved model names the images as before')
    const width = await later.evaluate('document.documentElement.scrollWidth')
    check(width <= 390, `the page is ${width} px wide on a phone`)
    await later.screenshot({ path: `${folder}/vit-390.png`, fullPage: true })

    await page.addScriptTag({ type: 'module', url: '/decode.js' })
    await page.waitForFunction('globalThis.decode !== undefined')
    const there = await page.evaluate((text) => globalThis.decode(text), readFileSync(photograph).toString('base64'))
    const here = await decodeImage(photograph)
    const distance = torch.tensor(there.values).sub(here.flatten()).abs()
    check(there.shape.join() === here.shape.join(), `Chromium decodes an image of shape ${there.shape.join('x')}, upright, as Node does`)
    check(distance.max().item() <= 8, `colors differ by at most ${distance.max().item()} of 255`)
  } catch (error) {
    check(false, error.message)
  } finally {
    await context.close()
    server.close()
  }
  return failures
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { launch } = await import('../browser.mjs')
  const browser = await launch('vitPage')
  const failures = browser === null ? 0 : await checkVitPage(browser, process.argv[2] ?? 'demo-report/pages')
  await browser?.close()
  process.exit(failures === 0 ? 0 : 1)
}
