// Drives the playground of the site: programs run, compile and are explained, compared and minified, an endless loop stops, an address brings a program back, and examples of the guides run.
/** What an endless loop is, as a program. */
const ENDLESS = "console.log('begins')\nfor (;;) {}\n"

/** The exceptions to what a check says; nothing without any. */
export const butNot = (names) => (names.length === 0 ? '' : `, but not ${names.join(', ')}`)

/** The line of a text, from 1. */
const lineOf = (source, text) => source.split('\n').findIndex((line) => line.includes(text)) + 1

/** The playground in a page of the browser. */
export class Playground {
  constructor(page, addressOf, check) {
    this.page = page
    this.addressOf = addressOf
    this.check = check
  }

  status() {
    return this.page.textContent('#status')
  }

  loaded() {
    return this.page.waitForFunction(() => document.getElementById('source')?.value)
  }

  /** Opens a program afresh; without one, what the address says. */
  async open(source, hash = '') {
    await this.page.goto('about:blank')
    await this.page.goto(this.addressOf('playground', hash))
    await this.loaded()
    if (source !== null) await this.page.fill('#source', source)
  }

  /** Presses a button, and waits for the end of what it does. */
  async press(button) {
    await this.page.click(`#${button}`)
    await this.page.waitForFunction(() => document.body.dataset.state === 'idle', undefined, { timeout: 120_000 })
    return { status: await this.status(), output: await this.page.innerText('#output') }
  }
}

/** The order of the playground's own examples. */
const programsOf = (own) => {
  const [graph, training, broken, wrong, pattern] = own.map(([, source]) => source)
  return { graph, training, broken, wrong, pattern }
}

/** What every screen has to offer: run, compile, explain, minify, stop, and an address that brings a program back. */
export async function checkActions(playground, own) {
  const { page, check } = playground
  const { graph, broken, wrong } = programsOf(own)
  await playground.open(broken)
  const explained = await playground.press('explain')
  check(
    'Explain names the break and its line',
    explained.output.includes('Graph Break Count: 1') && explained.output.includes(`line ${lineOf(broken, '.item()')}`),
  )
  await page.fill('#source', wrong)
  const minified = await playground.press('minify')
  check(
    'Minify finds the wrong operator, in workers of its own',
    /14 nodes -> 3 in \d+ queries, judged in \d+ workers/.test(minified.output),
    minified.status,
  )

  await page.fill('#source', ENDLESS)
  await page.click('#run')
  await page.locator('#output').getByText('begins').waitFor()
  await page.click('#stop')
  check('an endless loop stops', (await playground.status()) === 'stopped')
  await page.fill('#source', 'console.log(6 * 7)')
  check('and the next program runs', (await playground.press('run')).output.trim() === '42')

  await page.click('#share')
  await page.waitForFunction(() => location.hash.startsWith('#code='))
  const hash = await page.evaluate(() => location.hash)
  await playground.open(null, hash)
  check(
    'an address brings its program back, and does not run it',
    (await page.inputValue('#source')) === 'console.log(6 * 7)' && (await page.innerText('#output')) === '',
  )

  await page.fill('#source', graph)
  const compiled = await playground.press('compile')
  check('Compile compares with eager', /largest difference to eager \d/.test(compiled.output) && /eager .* ms, compiled/.test(compiled.output))
  const ran = await playground.press('run')
  check('a program runs, and prints', ran.status.startsWith('done') && ran.output.includes('LinearBackward'), ran.status)
}

/** What is behind the tabs, and what programs may be. */
export async function checkMore(playground, own) {
  const { page, check } = playground
  const { graph, training, pattern } = programsOf(own)
  await page.fill('#source', graph)
  await playground.press('run')
  await page.click('#tab-graph')
  const viewer = page.frameLocator('#panel-graph iframe')
  await viewer.locator('#search').waitFor()
  check('the graph of a program is in the viewer', (await viewer.locator('h1').first().textContent())?.includes('gm') === true)
  await playground.press('compile')
  await page.click('#tab-kernels')
  check('kernels are shown as loops', /kernel fused_\w+\(/.test(await page.innerText('#panel-kernels')))
  const compared = await playground.press('compare')
  check('Compare judges each node, and compares engines', compared.output.includes('torch.relu') && /compiled, wasm\b/.test(compared.output))
  await page.fill('#source', training)
  const trained = await playground.press('run')
  check('a training step is compiled, and the loss falls', Number(/step 200: loss (\S+)/.exec(trained.output)?.[1]) < 0.01)
  await page.click('#tab-report')
  await page.frameLocator('#panel-report iframe').getByText('compiling').first().waitFor()
  await page.fill('#source', pattern)
  check(
    'a pattern is replaced',
    (await playground.press('run')).output.includes('2 matches') && (await page.textContent('#panel-code')).includes('clamp'),
  )
  await page.fill('#source', "import { torch } from 'tensorfx'\n\nconst x = torch.ones([2, 3])\nx.matmul(x)\n")
  const refused = await playground.press('run')
  check('an error says what, and on which line', refused.status.startsWith('failed') && /ShapeError[^]*line 4/.test(refused.output))
  await page.fill('#source', "import { readFileSync } from 'node:fs'\nreadFileSync('x')\n")
  check('what needs Node says so', (await playground.press('run')).output.includes('only Node has'))
}

/** Examples of the guides: those that need no Node run, where `chosen` says so by their name; the others say that they need it. */
export async function checkExamples(playground, guides, chosen) {
  const { page, check } = playground
  await page.goto(playground.addressOf('guide/tensors'))
  await page.getByRole('link', { name: 'Run' }).first().click()
  await playground.loaded()
  check(
    'an example of a guide leads to the playground',
    (await page.inputValue('#source')).includes('torch') && (await page.inputValue('#examples')).startsWith('Tensors'),
  )
  const runnable = guides.filter(({ why }) => why === null)
  const tried = runnable.filter(({ name }) => chosen(name))
  for (const { name, source } of tried) {
    await page.fill('#source', source)
    const { status: end, output } = await playground.press('run')
    check(`the example '${name}' runs: ${end}: ${output.slice(-200)}`, end.startsWith('done'))
  }
  const others = guides.filter(({ why }) => why !== null)
  await page.goto(playground.addressOf('playground-examples'))
  const said = await page.evaluate(() =>
    Object.fromEntries(
      [...document.querySelectorAll('h2')].flatMap((title) =>
        [...title.nextElementSibling.querySelectorAll('tbody tr')].map(({ cells }) => [
          `${title.querySelector('a').textContent} · line ${cells[0].textContent}`,
          cells[2].textContent,
        ]),
      ),
    ),
  )
  const silent = others.filter(({ name, why }) => said[name] !== why)
  check(`examples that need Node say so${butNot(silent.map(({ name }) => name))}`, silent.length === 0)
  check(`${tried.length} of ${runnable.length} examples of the guides that need no Node run`, true, `${others.length} say that they need Node`)
}
