// Drives the site and its playground from a disk, without a network, at three widths, light and dark: nothing is cut off, the search forgives typing errors, programs run, compile and are
// explained and minified, an endless loop stops, an address brings a program back. Examples of the guides run in the playground, a tenth each day.
import { mkdirSync, readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { playgroundExamples } from '../site/playground.mjs'

const SCREENS = {
  phone: { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true },
  tablet: { viewport: { width: 768, height: 1024 } },
  desktop: { viewport: { width: 1280, height: 800 } },
}
const PAGES = [
  'playground-examples',
  'index',
  'start',
  'guide/compile',
  'api/index',
  'api/nn',
  'api/nn/Linear',
  'operators',
  'operators/torch.relu',
  'errors/TFX_SHAPE',
  'flows/index',
  'changelog',
  'playground',
]

/** Names as users mistype them, and what the search has to find first. */
const MISTYPED = {
  symbolicTrcae: 'symbolicTrace',
  Liner: 'Linear',
  TFX_SHPAE: 'TFX_SHAPE',
  'torch.reul': 'torch.relu',
  'debuging a compile': 'Debugging a compile',
  replacePatern: 'replacePattern',
}

/** What an endless loop is, as a program. */
const ENDLESS = "console.log('begins')\nfor (;;) {}\n"

/** The line of a text, from 1. */
const lineOf = (source, text) => source.split('\n').findIndex((line) => line.includes(text)) + 1

/** Whether something reaches over the right edge of the window. */
const overflows = (page) => page.evaluate(() => document.documentElement.scrollWidth > innerWidth || document.body.scrollWidth > innerWidth)

/** Returns the number of failures. `site` is the folder of the site, pictures go to `folder`. `chosen`: whether the example of a name runs this time. */
export async function checkSite(browser, site, folder, { root, chosen }) {
  mkdirSync(folder, { recursive: true })
  const failed = []
  const check = (what, ok, figure = '') => {
    if (!ok) failed.push(what)
    if (!ok || figure !== '') console.log(`${ok ? 'ok    ' : 'FAILED'} site: ${what}${figure === '' ? '' : ` (${figure})`}`)
  }
  const addressOf = (name, hash = '') => pathToFileURL(join(site, `${name}.html`)).href + hash
  const context = async (options) => {
    const one = await browser.newContext(options)
    await one.setOffline(true)
    one.on('request', (request) => /^(?:file|data|blob):/.test(request.url()) || check(`a request to ${request.url()}`, false))
    one.on('weberror', (error) => check(`an error on ${error.page()?.url()}: ${error.error().message}`, false))
    return one
  }

  // —— looks
  for (const [screen, size] of Object.entries(SCREENS)) {
    const one = await context({ ...size, colorScheme: screen === 'tablet' ? 'dark' : 'light' })
    const page = await one.newPage()
    for (const name of PAGES) {
      await page.goto(addressOf(name))
      check(`${name} does not scroll sideways on a ${screen}`, !(await overflows(page)))
      if (screen !== 'tablet' && (name === 'index' || name === 'guide/compile')) {
        await page.screenshot({ path: join(folder, `${screen}-${name.replace('/', '-')}.png`) })
      }
    }
    await one.close()
  }
  check(`${PAGES.length} pages fit ${Object.keys(SCREENS).length} screens`, true, 'no sideways scrolling')

  // —— the search
  const one = await context({ ...SCREENS.desktop })
  const page = await one.newPage()
  await page.goto(addressOf('api/nn'))
  for (const [typed, wanted] of Object.entries(MISTYPED)) {
    await page.fill('#search', typed)
    const first = await page.evaluate(() => document.querySelector('#results a')?.firstChild?.textContent ?? 'nothing')
    check(`the search finds ${wanted} for ${typed}, not ${first}`, first === wanted)
  }
  await page.fill('#search', 'symbolicTrcae')
  await page.press('#search', 'Enter')
  await page.waitForURL(/symbolicTrace\.html/)
  check(
    `the search forgives ${Object.keys(MISTYPED).length} typing errors, and leads to the page`,
    (await page.textContent('h1')) === 'symbolicTrace',
    'found first',
  )

  // —— the playground
  const idle = () => page.waitForFunction(() => document.body.dataset.state === 'idle', undefined, { timeout: 30_000 })
  const status = () => page.textContent('#status')
  /** Opens a program afresh. */
  const open = async (source) => {
    await page.goto('about:blank')
    await page.goto(addressOf('playground'))
    await page.waitForFunction(() => document.getElementById('source').value !== '')
    await page.fill('#source', source)
  }
  const press = async (button) => {
    await page.click(`#${button}`)
    await idle()
    return { status: await status(), output: await page.innerText('#output') }
  }
  const { own, guides } = playgroundExamples(root)
  const [graph, training, broken, wrong, pattern] = own.map(([, source]) => source)

  await open(graph)
  const ran = await press('run')
  check('a program runs, and prints', ran.status.startsWith('done') && ran.output.includes('LinearBackward'), ran.status)
  await page.click('#tab-graph')
  const viewer = page.frameLocator('#panel-graph iframe')
  await viewer.locator('#search').waitFor()
  check('its graph is in the viewer', (await viewer.locator('h1').first().textContent())?.includes('gm') === true)
  const compiled = await press('compile')
  check('Compile compares with eager', /largest difference to eager \d/.test(compiled.output) && /eager .* ms, compiled/.test(compiled.output))
  await page.click('#tab-kernels')
  check('kernels are shown as loops', /kernel fused_\w+\(/.test(await page.innerText('#panel-kernels')))
  const compared = await press('compare')
  check('Compare judges each node, and compares engines', compared.output.includes('torch.relu') && /compiled, wasm\b/.test(compared.output))
  await open(broken)
  const explained = await press('explain')
  check(
    'Explain names the break and its line',
    explained.output.includes('Graph Break Count: 1') && explained.output.includes(`line ${lineOf(broken, '.item()')}`),
  )
  await open(wrong)
  const minified = await press('minify')
  check(
    'Minify finds the wrong operator, in workers of its own',
    /14 nodes -> 3 in \d+ queries, judged in \d+ workers/.test(minified.output),
    minified.status,
  )
  await open(training)
  const trained = await press('run')
  check('a training step is compiled, and the loss falls', Number(/step 200: loss (\S+)/.exec(trained.output)?.[1]) < 0.01)
  await page.click('#tab-report')
  await page.frameLocator('#panel-report iframe').getByText('compiling').first().waitFor()
  await open(pattern)
  check('a pattern is replaced', (await press('run')).output.includes('2 matches') && (await page.textContent('#panel-code')).includes('clamp'))

  await open("import { torch } from 'tensorfx'\n\nconst x = torch.ones([2, 3])\nx.matmul(x)\n")
  const refused = await press('run')
  check('an error says what, and on which line', refused.status.startsWith('failed') && /ShapeError[^]*line 4/.test(refused.output))
  await open("import { readFileSync } from 'node:fs'\nreadFileSync('x')\n")
  check('what needs Node says so', (await press('run')).output.includes('only Node has'))

  await open(ENDLESS)
  await page.click('#run')
  await page.getByText('begins').waitFor()
  await page.click('#stop')
  check('an endless loop stops', (await status()) === 'stopped')
  await page.fill('#source', 'console.log(6 * 7)')
  check('and the next program runs', (await press('run')).output.trim() === '42')

  await page.click('#share')
  await page.waitForFunction(() => location.hash.startsWith('#code='))
  const hash = await page.evaluate(() => location.hash)
  await page.goto('about:blank')
  await page.goto(addressOf('playground', hash))
  await page.waitForFunction(() => document.getElementById('source').value !== '')
  check(
    'an address brings its program back, and does not run it',
    (await page.inputValue('#source')) === 'console.log(6 * 7)' && (await page.innerText('#output')) === '',
  )

  // —— the examples of the guides
  await page.goto(addressOf('guide/tensors'))
  await page.getByRole('link', { name: 'Run' }).first().click()
  await page.waitForFunction(() => document.getElementById('source')?.value.includes('torch'))
  check(
    'an example of a guide leads to the playground',
    guides.some(({ source }) => source.includes('torch')) && (await page.inputValue('#examples')).startsWith('Tensors'),
  )
  const runnable = guides.filter(({ why }) => why === null)
  const tried = runnable.filter(({ name }) => chosen(name))
  for (const { name, source } of tried) {
    await page.fill('#source', source)
    const { status: end, output } = await press('run')
    check(`the example '${name}' runs: ${end}: ${output.slice(-200)}`, end.startsWith('done'))
  }
  check(`${tried.length} of ${runnable.length} examples of the guides that need no Node run`, true, `${guides.length - runnable.length} need Node`)
  await one.close()

  for (const [screen, size] of Object.entries(SCREENS)) {
    const pictures = await context({ ...size, colorScheme: screen === 'tablet' ? 'dark' : 'light' })
    const shown = await pictures.newPage()
    await shown.goto(addressOf('playground'))
    await shown.click('#run')
    await shown.waitForFunction(() => document.getElementById('status').textContent.startsWith('done'))
    await shown.click('#tab-graph')
    check(`the playground fits a ${screen}`, !(await overflows(shown)))
    await shown.waitForTimeout(100)
    await shown.screenshot({ path: join(folder, `${screen}-playground.png`) })
    await pictures.close()
  }

  // —— every public name is found
  const names = new Set(
    readFileSync(join(site, 'search.js'), 'utf8')
      .split('\n')
      .map((line) => /\["((?:[^"\\]|\\.)*)"/.exec(line)?.[1]),
  )
  const surfaces = join(root, 'test/goldens/public-surface')
  const missing = readdirSync(surfaces).flatMap((file) =>
    [...readFileSync(join(surfaces, file), 'utf8').matchAll(/^(?:class|function|interface|type|const) (\w+)(?![\w.])/gm)].flatMap(([, name]) =>
      names.has(name) ? [] : [`${name} (${file})`],
    ),
  )
  check(`the search knows every public name, but not ${missing.join(', ')}`, missing.length === 0)
  return failed.length
}
