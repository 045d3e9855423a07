// Builds the page into a directory: node build.mjs [DIRECTORY]. The result is the same bytes from
// the same sources, so that a fresh build can be compared with the committed one.
import { build } from 'esbuild'
import { copyFileSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { gzipSync } from 'node:zlib'

const out = process.argv[2] ?? '../internal/console/assets'
const most = 120 << 10 // bytes, compressed
const files = ['index.html', 'icon.svg']

mkdirSync(out, { recursive: true })
await build({
  entryPoints: { app: 'src/main.tsx' },
  outdir: out,
  bundle: true,
  minify: true,
  format: 'esm',
  target: 'es2022',
  charset: 'utf8',
  legalComments: 'none',
  jsx: 'automatic',
  jsxImportSource: 'preact',
})
for (const name of files) copyFileSync(`src/${name}`, `${out}/${name}`)
writeFileSync(`${out}/licences.txt`, licences())

let total = 0
for (const name of ['app.js', 'app.css', 'licences.txt', ...files]) {
  const compressed = gzipSync(readFileSync(`${out}/${name}`), { level: 9 }).length
  total += compressed
  console.log(`${name.padEnd(12)} ${String(statSync(`${out}/${name}`).size).padStart(8)} bytes ${String(compressed).padStart(7)} compressed`)
}
if (total > most) throw new Error(`the page has ${total} bytes compressed, at most ${most}`)
console.log(`console: ${total} of ${most} bytes, compressed`)

// The licences of the packages that are in the page, as they ask.
function licences() {
  const packages = Object.keys(JSON.parse(readFileSync('package.json', 'utf8')).dependencies)
  return packages.map((name) => {
    const { version, license } = JSON.parse(readFileSync(`node_modules/${name}/package.json`, 'utf8'))
    return `${name} ${version}, ${license}\n\n${readFileSync(`node_modules/${name}/LICENSE`, 'utf8').trim()}\n`
  }).join('\n\n')
}
