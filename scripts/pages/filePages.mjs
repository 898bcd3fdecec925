// Drives opening files: a graph, weights of safetensors and of torch.save are dropped on a page, or chosen; what is no such file, or is hostile, leaves the page as it was.
import { mkdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { fx, torch } from 'tensorfx'
import { graphToJson } from 'tensorfx/fx/json'
import { filePage, graphPage } from 'tensorfx/fx/viewer'
import { saveGraphModule, writeSafetensors } from 'tensorfx/interop'
import { Driver, SCREENS } from './driver.mjs'
import { ResNet, resnets } from './graphs.mjs'

const golden = (name) => readFileSync(fileURLToPath(new URL(`../../test/goldens/weights/${name}`, import.meta.url)))
const text = (value) => new TextEncoder().encode(value)
const smallGraph = () => graphToJson(fx.symbolicTrace((x) => torch.relu(x).add(1)).graph)

/** Files that must be refused, with what the page says. */
const REFUSED = {
  'photo.png': [Uint8Array.of(0x89, 0x50, 0x4e, 0x47, 13, 10, 26, 10, 0, 0), /'photo\.png' is of no known format\. Known are the JSON of a graph/],
  'empty.pt': [new Uint8Array(), /'empty\.pt' is empty/],
  'other.json': [text('{"a": 1}'), /JSON, but not that of a graph/],
  'broken.json': [text('{"nodes": ['), /is not JSON/],
  'loop.json': [
    text('{"version":2,"nodes":[{"op":"output","name":"output","target":"output","args":[{"$node":"x"}],"kwargs":{}}]}'),
    /node 'x' is used before it is defined/,
  ],
  'proto.json': [
    text('{"version":2,"nodes":[{"op":"get_attr","name":"a","target":"__proto__.polluted","args":[],"kwargs":{}}]}'),
    /refers to the attribute '__proto__\.polluted'/,
  ],
  'cut.safetensors': [writeSafetensors([['w', torch.ones([64])]]).subarray(0, 100), /64|100 bytes|data/],
  'cut.pt': [golden('encoder.pt').subarray(0, 300), /zip archive is damaged/],
}

/** Returns the number of failures. Leaves the pages and their pictures in `folder`. */
export async function checkFilePages(browser, folder) {
  mkdirSync(folder, { recursive: true })
  const failed = []
  const check = (what, ok, figure = '') => {
    console.log(`${ok ? 'ok    ' : 'FAILED'} opening a file: ${what}${figure === '' ? '' : ` (${figure})`}`)
    if (!ok) failed.push(what)
  }
  const open = (name, html, options) => Driver.open(browser, `${folder}/${name}.html`, html, options, (what) => check(`${name}: ${what}`, false))
  await checkDrops(
    await open(
      'drop',
      graphPage(
        fx.symbolicTrace((x) => torch.relu(x)),
        { title: 'start' },
      ),
      SCREENS.desktop,
    ),
    check,
    folder,
  )
  await checkWeights(open, check, folder)
  return failed.length
}

/** Drops a file on the page. */
async function drop({ page }, name, bytes) {
  await page.evaluate(
    ([file, encoded]) => {
      const dataTransfer = new DataTransfer()
      dataTransfer.items.add(new File([Uint8Array.from(atob(encoded), (c) => c.charCodeAt(0))], file))
      for (const type of ['dragover', 'drop']) dispatchEvent(new DragEvent(type, { dataTransfer, cancelable: true, bubbles: true }))
    },
    [name, Buffer.from(bytes).toString('base64')],
  )
}

async function checkDrops(driver, check, folder) {
  const { page } = driver
  const title = () => page.locator('h1').innerText()
  for (const [name, [bytes, message]] of Object.entries(REFUSED)) {
    await drop(driver, name, bytes)
    await page.locator('#notice.error').waitFor()
    const said = await page.locator('#notice span').innerText()
    check(`${name} is refused, and says why`, message.test(said), said)
    check(`${name} leaves the page as it was`, (await title()) === 'start' && (await driver.shown) === 3)
    if (name === 'photo.png') await page.screenshot({ path: `${folder}/drop-refused.png` })
    await page.locator('#close-notice').click()
  }
  const opened = async (name, bytes) => {
    await drop(driver, name, bytes)
    await page.waitForFunction((wanted) => document.title === wanted && document.querySelector('#notice')?.hidden === true, name, { timeout: 30_000 })
    await driver.settle()
  }
  // What a program outside calls, and markup, are texts.
  const hostile = smallGraph()
  const named = '<img src=x onerror="globalThis.hacked = 1">.json'
  Object.assign(hostile.nodes[1], { target: 'evil.run', name: '</script><script>globalThis.hacked = 1</script>' })
  Object.assign(hostile.nodes[2].args[0], { $node: hostile.nodes[1].name })
  await opened(named, text(JSON.stringify(hostile)))
  await page.evaluate(() => globalThis.graphPage.select(JSON.parse(document.querySelector('#data').textContent).graph.nodes[1][0]))
  await driver.settle()
  const heading = await page.locator('#panel h2').innerText()
  check(
    'a graph with markup and unknown functions is only shown',
    (await page.evaluate('globalThis.hacked')) === undefined && heading === 'run' && (await title()) === named,
    heading,
  )
  const { traced } = resnets()
  await opened('graph.json', text(JSON.stringify(graphToJson(traced.graph))))
  check('the JSON of a graph is shown', (await driver.shown) === traced.graph.nodes.length, `${await driver.shown}`)
  await opened('resnet.safetensors', saveGraphModule(traced))
  await page.evaluate(() => globalThis.graphPage.select('conv1'))
  await driver.settle()
  const panel = await page.locator('#panel').innerText()
  const missing = ['Conv2d', 'kernelSize', '[7, 7]', 'f32[1, 16, 32, 32]', 'float32[16, 3, 7, 7]', 'std', 'graphs.mjs:'].filter(
    (part) => !panel.includes(part),
  )
  check('a saved GraphModule is shown with layers, shapes and statistics', missing.length === 0, missing.join(', '))
  await page.screenshot({ path: `${folder}/drop-module.png` })
  await opened('encoder.pt', golden('encoder.pt'))
  check(
    'the state dict of torch.save is shown as a tree',
    (await page.locator('.row').count()) > 2 && /tensors?, /.test(await page.locator('.count').innerText()),
  )
  await page.screenshot({ path: `${folder}/drop-pt.png` })
  await page.locator('#file').setInputFiles({ name: 'chosen.json', mimeType: 'application/json', buffer: Buffer.from(JSON.stringify(smallGraph())) })
  await page.waitForFunction(() => document.title === 'chosen.json')
  await driver.settle()
  check('a file can be chosen, also from the page of another file', (await driver.shown) === 4, `${await driver.shown}`)
  await page.close()
}

async function checkWeights(open, check, folder) {
  const model = new ResNet()
  const html = await filePage(
    'resnet.safetensors',
    writeSafetensors([...model.stateDict(), ['layer1.odd', torch.tensor([NaN, 1, 2])]], { made: 'by a test' }),
  )
  for (const [screen, size] of Object.entries(SCREENS)) {
    const driver = await open(`weights-${screen}`, html, { ...size, colorScheme: screen === 'phone' ? 'dark' : 'light' })
    const { page } = driver
    const rows = () => page.locator('.row').allInnerTexts()
    check(`weights, ${screen}: nothing is cut off`, !(await driver.overflows()))
    await page.screenshot({ path: `${folder}/weights-${screen}.png` })
    await driver.press('o')
    await page.locator('#search').fill('layer2 conv weight')
    check(
      `weights, ${screen}: a search finds tensors, in their groups`,
      (await page.locator('#hits').innerText()) === '4 found' && (await rows()).length > 4,
      (await rows()).length,
    )
    await page.locator('.row:not(.group)').first().click()
    await driver.settle()
    const panel = await page.locator('#panel').innerText()
    check(
      `weights, ${screen}: a click shows shape, size, statistics and a histogram`,
      ['[32, 16, 3, 3]', 'float32', '4,608', '18.0 KiB', 'std', 'mean'].every((part) => panel.includes(part)) &&
        (await page.locator('#panel .histogram path').count()) === 1,
      panel.replaceAll('\n', ' '),
    )
    await page.screenshot({ path: `${folder}/weights-${screen}-tensor.png` })
    const { hash } = new URL(page.url())
    await driver.visit(hash)
    check(
      `weights, ${screen}: its address shows it again`,
      (await page.locator('#panel h2').innerText()) === 'weight' && (await page.locator('.row.current').count()) === 1,
      hash,
    )
    check(
      `weights, ${screen}: with everything open few elements`,
      (await driver.press('o'), await driver.elements) < 1500,
      `${await driver.elements}`,
    )
    await page.close()
  }
}
