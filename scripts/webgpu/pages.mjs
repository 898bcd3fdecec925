// Runs files of tests of the GPU in a page of headless Chromium. Part of npm run test:webgpu.
import { createServer } from 'node:http'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import { launch } from '../browser.mjs'

const root = fileURLToPath(new URL('../..', import.meta.url))

/** The program of a file: it collects its tests, and runs them. */
const programOf = (file) =>
  [
    "import { runTests } from './test/webgpu/page/vitest.ts'",
    `import './${file}'`,
    'globalThis.results = []',
    "runTests((result) => results.push(result), new URLSearchParams(location.search).get('only') ?? '').then(() => (globalThis.done = true))",
  ].join('\n')

/** A program as one script on the sources. */
async function script(contents) {
  const { outputFiles } = await build({
    stdin: { contents, resolveDir: root },
    bundle: true,
    format: 'esm',
    platform: 'browser',
    target: 'es2022',
    keepNames: true,
    sourcemap: 'inline',
    write: false,
    logLevel: 'error',
    tsconfigRaw: {},
    // All drawn cases.
    define: { 'process.env': JSON.stringify({ TENSORFX_FULL: '1' }) },
    // package.json says which modules may be left out; tests are none of them.
    ignoreAnnotations: true,
    alias: { vitest: `${root}test/webgpu/page/vitest.ts` },
    plugins: [
      {
        name: 'sources',
        setup({ onResolve }) {
          onResolve({ filter: /^tensorfx(\/|$)/ }, ({ path }) => ({
            path: path === 'tensorfx' ? `${root}src/index.ts` : `${root}src/entries/${path.slice('tensorfx/'.length)}.ts`,
          }))
        },
      },
    ],
  })
  return outputFiles[0].contents
}

const PAGE = '<!doctype html><title>Tests on the GPU</title><script type="module" src="/tests.js"></script>'

/** Serves scripts by their addresses, and a page that runs `/tests.js`. */
async function serve(scripts) {
  const server = createServer((request, response) => {
    const contents = scripts.get(request.url)
    response.setHeader('content-type', contents === undefined ? 'text/html; charset=utf-8' : 'text/javascript')
    response.end(contents ?? PAGE)
  })
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve))
  return server
}

/** Runs each file in a page of its own, tests whose names have `only` in them. Returns the numbers of tests that passed and failed; null where there is no browser. */
export async function testInPages(files, { only = '', timeout = 600_000 } = {}) {
  const browser = await launch('test:webgpu', { software: true })
  if (browser === null) return null
  const counts = { passed: 0, failed: 0 }
  try {
    for (const file of files) {
      // oxlint-disable-next-line no-await-in-loop -- one GPU
      const { passed, failed } = await testFile(browser, file, only, timeout)
      counts.passed += passed
      counts.failed += failed
    }
  } finally {
    await browser.close()
  }
  return counts
}

async function testFile(browser, file, only, timeout) {
  const began = performance.now()
  const scripts = new Map([['/tests.js', await script(programOf(file))]])
  if (file.endsWith('.page.ts')) scripts.set('/worker.js', await script("import './test/webgpu/page/worker.ts'"))
  const server = await serve(scripts)
  const page = await browser.newPage()
  const errors = []
  page.on('pageerror', ({ message }) => errors.push(message))
  let results = []
  let isDone = false
  try {
    await page.goto(`http://127.0.0.1:${server.address().port}/?only=${encodeURIComponent(only)}`)
    await page.waitForFunction('globalThis.done === true', undefined, { timeout }).catch(({ message }) => errors.push(message))
    results = (await page.evaluate('globalThis.results')) ?? []
    isDone = (await page.evaluate('globalThis.done')) === true
  } finally {
    await page.close()
    server.close()
  }
  const failures = results.filter(({ failure }) => failure !== null)
  for (const { name, failure } of failures) console.log(`FAILED in a page: ${name}\n${failure}`)
  for (const message of errors) console.log(`FAILED in a page, ${file}: ${message}`)
  if (!isDone || results.length === 0) console.log(`FAILED in a page, ${file}: its tests did not come to an end after ${results.length}`)
  const failed = failures.length + errors.length + (isDone && results.length > 0 ? 0 : 1)
  console.log(`${file} in a page: ${results.length - failures.length} passed, ${failed} failed, ${((performance.now() - began) / 1000).toFixed(0)} s`)
  return { passed: results.length - failures.length, failed }
}
