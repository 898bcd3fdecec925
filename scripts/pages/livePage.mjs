// Drives the live page of a training: examples/gpt/watch.mjs learns a text file while its page is open in the browser, and writes at its end. Part of npm run test:browser; alone:
// node scripts/pages/livePage.mjs.
import { spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { launch } from '../browser.mjs'

const program = fileURLToPath(new URL('../../examples/gpt/watch.mjs', import.meta.url))
const [EPOCHS, STEPS] = [3, 40]

/** Starts the training in a folder. `address`: that of the page; `ended`: what the program has printed, when it has ended well. */
function start(folder) {
  writeFileSync(join(folder, 'text.txt'), 'to be or not to be, that is the question; '.repeat(60))
  const child = spawn(process.execPath, [program, 'text.txt', String(EPOCHS), String(STEPS)], { cwd: folder })
  let [printed, said] = ['', '']
  child.stdout.on('data', (data) => (printed += data))
  const address = new Promise((resolve) => {
    child.stderr.on('data', (data) => {
      said += data
      const [found] = /http:\/\/127\.0\.0\.1:\d+\/\S*/.exec(said) ?? []
      if (found !== undefined) resolve(found)
    })
  })
  const ended = new Promise((resolve, reject) => {
    child.on('exit', (code) => (code === 0 ? resolve(printed) : reject(new Error(`the training ended with code ${code}: ${said.slice(-500)}`))))
  })
  ended.catch(() => {})
  return { child, address: Promise.race([address, ended]), ended }
}

/** How many points the line of the training has in each chart, by its title. */
const pointsOf = (page) =>
  page.$$eval('#charts > *', (all) =>
    Object.fromEntries(
      all.map((chart) => [
        chart.querySelector('h2, h3, figcaption, text')?.textContent ?? '',
        Math.max(
          0,
          ...[...chart.querySelectorAll('path, polyline')].map(
            (line) => (line.getAttribute('d') ?? line.getAttribute('points') ?? '').split(/[ML ]/).length - 1,
          ),
        ),
      ]),
    ),
  )

/** Returns the number of failures. Leaves pictures of the page in `folder`. */
export async function checkLivePage(browser, folder) {
  mkdirSync(folder, { recursive: true })
  let failures = 0
  const check = (ok, text) => {
    if (!ok) failures++
    console.log(`${ok ? 'ok    ' : 'FAILED'} live page: ${text}`)
  }
  const scratch = mkdtempSync(join(tmpdir(), 'tensorfx-live-'))
  const { child, address, ended } = start(scratch)
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 } })
  try {
    const page = await context.newPage()
    page.on('pageerror', ({ message }) => check(false, message))
    await page.goto(await address)
    await page.waitForFunction(() => document.querySelectorAll('#charts > *').length >= 5, undefined, { timeout: 120_000 })
    const early = await pointsOf(page)
    const text = await ended
    const steps = EPOCHS * STEPS
    // The page draws some time after the last message of the run has come. It is not told of every step: of some a second.
    await page.waitForFunction((last) => document.body.innerText.includes(`done`) && document.body.innerText.includes(`at step ${last}`), steps)
    const late = await pointsOf(page)
    check(late.Loss >= early.Loss + 20, `the curve of the loss had ${early.Loss} points, and has ${late.Loss} after ${steps} steps`)
    check(late['Norm of gradients'] >= 20 && late.perplexity >= EPOCHS, `curves: ${Object.keys(late).join(', ')}`)
    await page.screenshot({ path: `${folder}/live-1280.png`, fullPage: true })
    await page.setViewportSize({ width: 390, height: 844 })
    const width = await page.evaluate('document.documentElement.scrollWidth')
    check(width <= 390, `the page is ${width} px wide on a phone`)
    await page.screenshot({ path: `${folder}/live-390.png`, fullPage: true })
    check(/^to be or[^]{48}\n$/.test(text), `the trained model writes ${JSON.stringify(text.trim())}`)
  } catch (error) {
    check(false, error.message)
  } finally {
    child.kill()
    await context.close()
    rmSync(scratch, { recursive: true, force: true })
  }
  return failures
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const browser = await launch('livePage')
  if (browser !== null) {
    try {
      process.exitCode = (await checkLivePage(browser, 'demo-report/pages')) === 0 ? 0 : 1
    } finally {
      await browser.close()
    }
  }
}
