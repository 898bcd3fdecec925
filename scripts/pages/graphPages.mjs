// Drives the pages of graphs: what is seen at first and with Fit, at what cost, and everything that one can do in them.
import { mkdirSync, readFileSync } from 'node:fs'
import { graphPage } from 'tensorfx/fx/viewer'
import { Driver, SCREENS } from './driver.mjs'
import { large, resnets, shapes } from './graphs.mjs'

const MOST_BYTES = 2_000_000
const MOST_ELEMENTS = 1_500
/** Milliseconds of script. A page of 10,000 nodes takes about a fifth of the first, and a tenth of the second, on a machine of 2024. */
const FIRST_VIEW = 1_000
const STEP = 16

/** Returns the number of failures. Leaves the pages and their pictures in `folder`. With a day only the large graphs whose turn it is then. */
export async function checkGraphPages(browser, folder, { inAllThemes = true, day = null } = {}) {
  mkdirSync(folder, { recursive: true })
  const failed = []
  const check = (what, ok, figure = '') => {
    console.log(`${ok ? 'ok    ' : 'FAILED'} graph page: ${what}${figure === '' ? '' : ` (${figure})`}`)
    if (!ok) failed.push(what)
  }
  const open = (name, html, options) => Driver.open(browser, `${folder}/${name}.html`, html, options, (what) => check(`${name}: ${what}`, false))
  const models = resnets()
  await checkInteractions(models, open, check, folder)
  await checkDifference(models, open, check, folder)
  await checkPhone(models, open, check, folder)
  await checkShapes(open, check, folder)
  const largeNow = large.filter((_, i) => inAllThemes || day === null || i === day % large.length)
  await checkSizes(Object.assign({ 'resnet-70': () => models.traced }, ...largeNow), open, check, folder, inAllThemes)
  return failed.length
}

const namesOf = (gm) => [...gm.graph.nodes].map((node) => node.name)

/** Bytes, elements and script of graphs of every size, on every screen, light and dark; or, if not `inAllThemes`, the desktop light and the phone dark. */
async function checkSizes(graphs, open, check, folder, inAllThemes) {
  for (const [name, make] of Object.entries(graphs)) {
    const gm = make()
    const names = namesOf(gm)
    const html = graphPage(gm, { title: name })
    check(`${name}: ${names.length} nodes are at most 2 MB`, html.length <= MOST_BYTES, `${(html.length / 1e6).toFixed(2)} MB`)
    for (const [screen, size] of Object.entries(SCREENS))
      for (const colorScheme of inAllThemes ? ['light', 'dark'] : [screen === 'phone' ? 'dark' : 'light']) {
        const driver = await open(name, html, { ...size, colorScheme })
        const on = `${name}, ${screen}, ${colorScheme}:`
        const first = await driver.scriptTime()
        check(`${on} the first view takes at most ${FIRST_VIEW} ms of script`, first <= FIRST_VIEW, `${first.toFixed(0)} ms`)
        check(`${on} opens with its first node in view`, (await driver.inView(names.slice(0, 1))) === 1)
        check(`${on} opens at a readable size`, (await driver.scale) >= 0.75)
        check(`${on} nothing is cut off at the right`, !(await driver.overflows()))
        await driver.page.screenshot({ path: `${folder}/${name}-${screen}-${colorScheme}.png` })
        await driver.press('o')
        const shown = await driver.shown
        check(`${on} Open all draws every node as a box`, shown === names.length, `${shown}`)
        const costs = { 'a wheel step': await driver.wheel(8), 'a step of a drag': await driver.drag(8) }
        await driver.button('fit')
        check(`${on} Fit shows every node`, (await driver.inView(names)) === names.length)
        check(`${on} Fit is not blank`, (await driver.drawnShare()) > 0.002, `${(100 * (await driver.drawnShare())).toFixed(1)}% drawn`)
        await driver.page.screenshot({ path: `${folder}/${name}-${screen}-${colorScheme}-fit.png` })
        costs['a wheel step with everything in view'] = await driver.wheel(8)
        costs['a step of a drag with everything in view'] = await driver.drag(8)
        for (const [what, time] of Object.entries(costs))
          check(`${on} ${what} takes at most ${STEP} ms of script`, time <= STEP, `${time.toFixed(1)} ms`)
        await driver.press('g')
        await driver.page.locator('#search').fill('l')
        await driver.page.evaluate((node) => globalThis.graphPage.select(node), names[Math.floor(names.length / 2)])
        await driver.settle()
        const elements = await driver.elements
        check(`${on} at most ${MOST_ELEMENTS} elements with code and results`, elements <= MOST_ELEMENTS, `${elements}`)
        await driver.page.close()
      }
  }
}

/** A click, keys, the panel, modules, search, the minimap, files and links. */
async function checkInteractions({ traced }, open, check, folder) {
  const count = traced.graph.nodes.length
  const driver = await open('resnet', graphPage(traced), { ...SCREENS.desktop, acceptDownloads: true })
  const { page } = driver
  const text = (selector) => page.locator(selector).innerText()
  check(`${count} nodes are drawn`, (await driver.shown) === count)
  check('no panel is open before a click', !(await page.locator('#side').isVisible()))

  await driver.click('conv1')
  const panel = await text('#panel')
  const wanted = [
    'Conv2d',
    'kernelSize',
    '[7, 7]',
    'f32[1, 3, 64, 64]',
    'f32[1, 16, 32, 32]',
    'float32[16, 3, 7, 7]',
    'bn1',
    'this.conv1.call(x)',
    'graphs.mjs:',
    'std',
  ]
  const missing = wanted.filter((part) => !panel.includes(part))
  check('a click shows configuration, shapes, parameters, users, code and source', missing.length === 0, missing.join(', '))
  check('parameters have a histogram', (await page.locator('#panel .histogram path').count()) === 1)
  await page.screenshot({ path: `${folder}/panel.png` })
  await page.locator('#panel [data-link="bn1"]').first().click()
  check('a link of the panel leads to that node', (await driver.selected) === 'bn1')
  await page.locator('[data-tab=code]').click()
  await page.locator('#code').evaluate((list) => (list.scrollTop = list.scrollHeight))
  await page.locator('#code div.has-node', { hasText: 'this.fc.call' }).first().click()
  await driver.settle()
  check('a line of code selects its node, and shows it', (await driver.selected) === 'fc' && (await driver.inView(['fc'])) === 1)
  await page.screenshot({ path: `${folder}/code.png` })
  await driver.press('Escape')
  check('Escape closes the panel', !(await page.locator('#side').isVisible()) && (await driver.selected) === null)

  await driver.button('close-all')
  check('closed modules are one box each', (await driver.shown) === 12, `${await driver.shown}`)
  await page.screenshot({ path: `${folder}/closed.png` })
  await driver.click('layer1_0_conv1')
  check('a click on a closed module opens it', (await driver.shown) === 13, `${await driver.shown}`)
  const opened = await driver.boxOf('layer1_0_conv1')
  // The heading of layer1 is above its first block.
  await page.mouse.click(opened.x + opened.width / 2, opened.y - 12)
  await driver.settle()
  check('a click on its heading closes it', (await driver.shown) === 12, `${await driver.shown}`)
  await driver.press('f')

  await page.locator('#search').fill('relu')
  check('search finds nodes in closed modules', (await text('#hits')) === '17 found', await text('#hits'))
  await page.locator('#search').press('Enter')
  await page.locator('#search').press('Enter')
  await driver.settle()
  check('Enter goes to the next result, and opens its modules', (await text('#hits')) === '2 of 17' && (await driver.selected) === 'layer1_0_relu')
  await page.screenshot({ path: `${folder}/search.png` })
  await page.locator('#search').fill('kind:pooling')
  check('search asks for kinds', (await text('#hits')) === '1 found')
  await page.locator('#search').fill('')
  await page.locator('#kind').selectOption('normalization')
  check('and so does the list of kinds', (await text('#hits')) === '20 found', await text('#hits'))
  await page.locator('#results button').nth(2).click()
  await driver.settle()
  check('a result leads to its node', (await driver.selected) === 'layer1_0_bn2', await driver.selected)
  await driver.press('Escape')

  await driver.press('o')
  await driver.click('conv1').catch(() => {})
  await page.evaluate(() => globalThis.graphPage.select('bn1'))
  await page.locator('#canvas').focus()
  const walked = []
  for (const key of ['ArrowDown', 'ArrowUp', 'ArrowUp', 'ArrowRight', 'ArrowLeft']) {
    await driver.press(key)
    walked.push(await driver.selected)
  }
  check('arrow keys go to users, inputs and neighbours', walked.join() === 'relu,bn1,conv1,bn1,conv1', walked.join())
  const scale = await driver.scale
  await driver.press('+')
  const larger = await driver.scale
  await driver.press('-')
  await driver.press('-')
  check('+ and - zoom', larger > scale * 1.2 && (await driver.scale) < scale)
  await driver.press('?')
  check('? shows the keys', await page.locator('#help').isVisible())
  await page.screenshot({ path: `${folder}/help.png` })
  await page.locator('#close-help').click()

  const before = await driver.boxOf('fc')
  const map = await page.locator('#minimap').boundingBox()
  await page.mouse.click(map.x + map.width / 2, map.y + map.height - 10)
  await driver.settle()
  const after = await driver.boxOf('fc')
  check('a click on the minimap goes there', after.y < before.y && (await driver.inView(['fc'])) === 1)

  await page.evaluate(() => globalThis.graphPage.select('layer2_0_conv2'))
  await driver.button('close-all')
  await page.waitForTimeout(500)
  const hash = new URL(page.url()).hash
  const [box, kept] = [await driver.boxOf('fc'), await driver.scale]
  await driver.visit(hash)
  const again = await driver.boxOf('fc')
  const isSame = Math.abs(again.x - box.x) < 2 && Math.abs(again.y - box.y) < 2 && Math.abs((await driver.scale) / kept - 1) < 0.01
  check('a link shows the same node, modules and place', isSame && (await driver.selected) === 'layer2_0_conv2' && (await driver.shown) === 12, hash)
  await driver.visit('#node=no_such&view=1,NaN,x&open=9-2.x')
  check('a broken link opens the page', (await driver.shown) > 0 && (await driver.selected) === null)

  await driver.visit()
  await page.locator('#show-export').click()
  const svg = await driver.download('export-svg')
  const picture = readFileSync(svg.path, 'utf8')
  const isWellFormed = await page.evaluate((t) => new DOMParser().parseFromString(t, 'image/svg+xml').querySelector('parsererror') === null, picture)
  check('SVG has every node', svg.name === 'ResNet.svg' && isWellFormed && namesOf(traced).every((name) => picture.includes(`>${name}<`)))
  await page.locator('#show-export').click()
  const png = await driver.download('export-png')
  const bytes = readFileSync(png.path)
  check(
    'PNG is a picture of the whole graph',
    bytes.subarray(1, 4).toString() === 'PNG' && bytes.readUInt32BE(20) > 8000,
    `${bytes.readUInt32BE(16)} x ${bytes.readUInt32BE(20)}`,
  )

  await page.evaluate(() => dispatchEvent(new Event('beforeprint')))
  await page.emulateMedia({ media: 'print' })
  check(
    'print shows the graph as SVG and no controls',
    (await page.locator('#print svg').isVisible()) && !(await page.locator('#canvas').isVisible()),
  )
  await page.screenshot({ path: `${folder}/print.png` })
  await page.close()
}

/** A difference: its changes are seen, one after the other. */
async function checkDifference({ traced, fused }, open, check, folder) {
  const driver = await open('diff', graphPage(fused, { title: 'fuse', before: traced }), SCREENS.desktop)
  const { page } = driver
  const text = (selector) => page.locator(selector).innerText()
  // A batch norm is gone for each convolution, which has a bias now. Their users are the same.
  check('the difference counts changes', (await text('.count')) === '0 added 20 removed 20 changed', await text('.count'))
  check('it opens at the first change', (await driver.selected) === 'conv1' && (await driver.inView(['conv1'])) === 1)
  check('with how many there are', (await text('#change')) === '1 of 40', await text('#change'))
  await driver.button('next')
  check('the next one is the removed batch norm', (await driver.selected) === 'bn1' && (await text('#panel .badge')) === 'removed')
  await page.screenshot({ path: `${folder}/diff.png` })
  await driver.press('p')
  await driver.press('p')
  check('before the first one is the last', (await text('#change')) === '40 of 40', await text('#change'))
  await page.evaluate(() => globalThis.graphPage.select('relu'))
  await driver.settle()
  check('a user of a removed node is not a change', (await page.locator('#panel .badge').count()) === 0 && (await driver.selected) === 'relu')
  await driver.press('g')
  check(
    'removed lines are struck out in the code',
    (await page
      .locator('#code .removed')
      .first()
      .evaluate((e) => getComputedStyle(e).textDecorationLine)) === 'line-through',
  )
  await page.screenshot({ path: `${folder}/diff-code.png` })
  await page.close()
}

/** Fingers, and the panel as a sheet that can be closed. */
async function checkPhone({ traced }, open, check, folder) {
  const driver = await open('resnet-phone', graphPage(traced), SCREENS.phone)
  const { page } = driver
  const canvas = async () => await page.locator('#canvas').boundingBox()
  const height = (await canvas()).height
  check('phone: the graph has the screen, without an empty panel', height > 844 * 0.8, `${height} px`)
  const before = await driver.scale
  await driver.pinch(60)
  const pinched = (await driver.scale) / before
  check('phone: two fingers zoom by as much as they move apart', Math.abs(pinched - 3) < 0.3, pinched.toFixed(2))
  check('phone: and select no node', (await driver.selected) === null)
  await driver.visit()
  const { x, y, width, height: h } = await driver.boxOf('conv1')
  await page.touchscreen.tap(x + width / 2, y + h / 2)
  await driver.settle()
  check('phone: a tap shows the node', (await driver.selected) === 'conv1' && (await page.locator('#panel h2').innerText()) === 'Conv2d')
  check('phone: with the graph above it', (await canvas()).height > 200 && (await driver.inView(['conv1'])) === 1, `${(await canvas()).height} px`)
  check('phone: nothing is cut off', !(await driver.overflows()))
  await page.screenshot({ path: `${folder}/phone-panel.png` })
  await page.locator('#close-side').tap()
  await driver.settle()
  check('phone: the sheet closes', (await canvas()).height === height)
  await page.close()
}

async function checkShapes(open, check, folder) {
  for (const [name, gm] of Object.entries(shapes)) {
    const file = name.replaceAll(/[^a-z0-9]+/g, '-')
    for (const [screen, size] of Object.entries(SCREENS)) {
      const driver = await open(file, graphPage(gm, { title: name }), size)
      const on = `${name}, ${screen}:`
      check(`${on} opens with its first node in view`, (await driver.inView(['x'])) === 1)
      check(`${on} opens at a readable size`, (await driver.scale) >= 0.75)
      await driver.page.screenshot({ path: `${folder}/${file}-${screen}.png` })
      await driver.button('fit')
      check(`${on} Fit shows every node`, (await driver.inView(namesOf(gm))) === gm.graph.nodes.length)
      await driver.page.close()
    }
  }
}
