// npm run test:browser: builds the page of examples/browser and drives it in headless Chromium, that of examples/vit, and the live page of examples/gpt; then pages on tensorfx/core, pages that show graphs
// and runs, and pages with a Content-Security-Policy. Where there is none, it says so and succeeds.
import { existsSync, mkdirSync } from 'node:fs'
import { execFile, execFileSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { day, launch } from './browser.mjs'

// WebGPU on the processor, so that it is compared on machines without a graphics card too.
const browser = await launch('test:browser', { software: true })
if (browser === null) process.exit(0)

const root = fileURLToPath(new URL('..', import.meta.url))
if (!existsSync(`${root}dist/index.js`)) execFileSync('npm', ['run', 'build'], { cwd: root, stdio: 'inherit' })
const { preview } = await import('vite')
const { checkGraphPages } = await import('./pages/graphPages.mjs')
const { checkFilePages } = await import('./pages/filePages.mjs')
const { checkReportPages } = await import('./pages/reportPages.mjs')
const { checkProfilePages } = await import('./pages/profilePages.mjs')
const { checkVitPage } = await import('./pages/vitPage.mjs')
const { checkLivePage } = await import('./pages/livePage.mjs')
const { checkCsp } = await import('./cspPages.mjs')
const { checkCorePages } = await import('./corePages.mjs')
const configFile = fileURLToPath(new URL('../examples/browser/vite.config.mjs', import.meta.url))

/** Builds the page of examples/browser, in a process of its own, which leaves this one to the other checks, and drives it. Returns the number of failures, as all checks do. */
async function checkExample() {
  await promisify(execFile)(process.execPath, [`${root}node_modules/vite/bin/vite.js`, 'build', '--config', configFile, '--logLevel', 'error'])
  const server = await preview({ configFile, logLevel: 'error', preview: { port: 0, host: '127.0.0.1' } })
  try {
    return await driveExample(server.resolvedUrls.local[0])
  } finally {
    await server.close()
  }
}

async function driveExample(address) {
  const page = await browser.newPage({ viewport: { width: 1000, height: 1400 } })
  let failures = 0
  page.on('pageerror', (error) => {
    failures++
    console.log(`page error: ${error.message}`)
  })
  await page.goto(address)
  await page.waitForFunction('globalThis.results?.done === true', undefined, { timeout: 240_000 })
  const results = await page.evaluate('globalThis.results')
  if ((await page.evaluate('globalThis.crossOriginIsolated')) !== false) failures++
  for (const id of ['a', 'b', 'c', 'd', 'e']) {
    console.log(`${results[id].ok ? 'ok    ' : 'FAILED'} ${id}. ${results[id].summary}`)
    if (!results[id].ok) failures++
  }
  await page.screenshot({ path: `${root}demo-report/browser.png`, fullPage: true })
  return failures
}

mkdirSync(`${root}demo-report`, { recursive: true })
/** Pages of runs are looked at on one screen each day, on the other one on the next. What a step of a graph's page costs is measured on both, the smaller one last, as it was when the bound was set. */
const options = { inAllThemes: process.env.TENSORFX_FULL === '1', day }
let failures = 0
try {
  // Together they keep two cores busy. Pages of graphs measure what a step costs, so they run alone.
  const side = [
    checkExample(),
    checkCsp(browser),
    checkCorePages(browser),
    checkReportPages(browser, `${root}demo-report/pages`, options),
    checkFilePages(browser, `${root}demo-report/pages`),
    checkVitPage(browser, `${root}demo-report/pages`),
    checkLivePage(browser, `${root}demo-report/pages`),
  ]
  for (const count of await Promise.all(side)) failures += count
  failures += await checkProfilePages(browser, `${root}demo-report/pages`, options)
  failures += await checkGraphPages(browser, `${root}demo-report/pages`, options)
} finally {
  await browser.close()
}
process.exit(failures === 0 ? 0 : 1)
