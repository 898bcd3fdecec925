// npm run docs:picture: makes the pictures of the README in headless Chromium: docs/graph.png, the graph viewer with a network whose batch norm has been folded into the convolution
// before it, and docs/playground.png, the playground with a graph.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { fx, nn, torch } from 'tensorfx'
import { fuse } from 'tensorfx/fx/experimental'
import { ShapeProp } from 'tensorfx/fx/passes'
import { graphPage } from 'tensorfx/fx/viewer'
import { launch } from '../browser.mjs'
import { frameOf, style } from '../site/frame.mjs'
import { playgroundFiles, playgroundPages } from '../site/playground.mjs'

class Block extends nn.Module {
  conv = new nn.Conv2d(8, 8, 3, { padding: 1 })
  bn = new nn.BatchNorm2d(8)

  forward(x) {
    return torch.relu(this.bn(this.conv(x)).add(x))
  }
}

class Net extends nn.Module {
  stem = new nn.Conv2d(3, 8, 3, { padding: 1 })
  block = new Block()
  fc = new nn.Linear(8, 10)

  forward(x) {
    return this.fc(this.block(this.stem(x)).mean([2, 3]))
  }
}

const root = fileURLToPath(new URL('../../', import.meta.url))
const before = fx.symbolicTrace(new Net().eval())
const after = fuse(before)
const image = torch.ones([1, 3, 32, 32])
for (const gm of [before, after]) new ShapeProp(gm).propagate(image)

/** The playground alone, in a folder; returns the address of its page. */
async function playground(folder) {
  for (const [name, text] of await playgroundFiles(root)) writeFileSync(join(folder, name), text)
  for (const [name, text] of playgroundPages(frameOf('tensorfx', ''))) writeFileSync(join(folder, `${name}.html`), text)
  writeFileSync(join(folder, 'site.css'), style())
  return pathToFileURL(join(folder, 'playground.html')).href
}

const folder = mkdtempSync(join(tmpdir(), 'tensorfx-picture-'))
const browser = await launch('docs:picture')
if (browser === null) process.exit(1)
try {
  const page = await browser.newPage({ viewport: { width: 1340, height: 780 }, colorScheme: 'light' })
  // The page shows the path of the traced file, which depends on the machine.
  await page.setContent(graphPage(after, { title: 'Folded', before }).replaceAll(root, ''))
  await page.locator('#search').fill('add')
  await page.locator('#search').press('Enter')
  await page.locator('#search').fill('')
  await page.locator('#search').blur()
  await page.keyboard.press('f')
  await page.waitForTimeout(500)
  writeFileSync(`${root}docs/graph.png`, await page.screenshot())

  await page.goto(await playground(folder))
  await page.locator('#run').click()
  await page.waitForFunction(() => document.querySelector('#status').textContent.startsWith('done'))
  await page.locator('#tab-graph').click()
  await page.waitForTimeout(500)
  writeFileSync(`${root}docs/playground.png`, await page.screenshot())
} finally {
  rmSync(folder, { recursive: true, force: true })
  await browser.close()
}
