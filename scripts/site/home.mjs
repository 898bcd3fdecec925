// The first page of the site.
import { highlight } from '../../dist/docs/write/highlight.js'
import { escapeHtml } from '../../dist/fx/viewer/document.js'

const EXAMPLE = `import { compile, fx, nn, torch } from 'tensorfx'

class Net extends nn.Module {
  fc = new nn.Linear(4, 3)
  forward(x) {
    return torch.relu(this.fc(x).add(1))
  }
}

const gm = fx.symbolicTrace(new Net())
console.log(gm.code) // JavaScript, to read and edit
const fast = compile(gm) // one fused kernel
fast(torch.randn([2, 4])).sum().backward()`

const CARDS = [
  [
    'Graphs that read like code',
    'symbolicTrace turns a model into a graph and the graph into JavaScript. Match patterns in it, rewrite it, split it.',
    'guide/transformations',
  ],
  [
    'A compiler for code as it is',
    'compile captures operators while your function runs, fuses them, and computes them in WebAssembly.',
    'guide/compile',
  ],
  [
    'A debugger for compilers',
    'A failing, hanging or wrong backend is reduced to the operator that is wrong, as a script.',
    'guide/debugging-a-compile',
  ],
  ['From PyTorch', 'The same names in camelCase, the same numbers, files of weights, and a list of every difference.', 'guide/porting-from-pytorch'],
]

const coloured = (source) =>
  highlight(source)
    .map(([kind, text]) => (kind === '' ? escapeHtml(text) : `<span class="t-${kind}">${escapeHtml(text)}</span>`))
    .join('')

/** The body of the page. `counts` says how much there is. */
export const homeBody = ({ name, description, counts }) => `<main class="home">
<div class="hero"><div>
<h1>${escapeHtml(name)}</h1>
<p class="lead">${escapeHtml(description)}.</p>
<p class="buttons"><a class="main" href="playground.html">Open the playground</a> <a href="start.html">Get started</a> <a href="tutorials/1-first-tensor.html">Tutorials</a> <a href="guides.html">Guides</a></p>
<pre class="install"><code>npm install tensorfx</code></pre>
</div>
<pre><code>${coloured(EXAMPLE)}</code></pre></div>
<div class="cards">${CARDS.map(([title, text, page]) => `<a href="${page}.html"><strong>${title}</strong><span>${escapeHtml(text)}</span></a>`).join('\n')}</div>
<figure><a href="playground.html"><img src="graph.png" alt="The graph viewer: a traced network whose batch norm was folded into a convolution" width="1340" height="780"></a>
<figcaption>A graph before and after a pass, with shapes, generated code and your source line.</figcaption></figure>
<h2>Look up</h2>
<ul class="columns">
${counts.map(([page, title, what]) => `<li><a href="${page}.html">${escapeHtml(title)}</a> <span class="soft">${escapeHtml(what)}</span></li>`).join('\n')}
</ul>
</main>`
