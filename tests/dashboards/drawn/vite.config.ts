import { defineConfig, type Plugin } from 'vite';

// Scenes is written for version 6 of the router, and @grafana/ui for 5. Grafana has both, the newer by this name.
const twoRouters: Plugin = {
  name: 'two-routers',
  enforce: 'pre',
  resolveId(source, importer) {
    const isOfScenes = source === 'react-router-dom' && importer?.includes('@grafana/scenes');
    return isOfScenes ? this.resolve('react-router-dom-v5-compat', importer) : null;
  },
};

// The editors of queries, which are never opened here, would have an assistant.
const noAssistant: Plugin = {
  name: 'no-assistant',
  enforce: 'pre',
  resolveId: (source) => (source === '@grafana/assistant' ? '\0no-assistant' : null),
  load: (id) => (id === '\0no-assistant' ? { code: 'export default {};', syntheticNamedExports: true } : null),
};

export default defineConfig({
  base: './',
  plugins: [twoRouters, noAssistant],
  define: { 'process.env.NODE_ENV': '"production"', 'process.env': '{}' },
  logLevel: 'error',
  build: { minify: false, reportCompressedSize: false },
});
