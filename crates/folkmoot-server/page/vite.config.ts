import react from '@vitejs/plugin-react';
import { defineConfig } from 'vite';

/** One script and one style sheet under fixed names: the binary embeds them, and a build of the same sources is the same bytes. */
export default defineConfig({
  base: '/',
  plugins: [react()],
  build: {
    outDir: '../assets',
    emptyOutDir: true,
    target: 'es2022',
    cssTarget: ['chrome123', 'firefox120', 'safari17.5'],
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    cssCodeSplit: false,
    license: { fileName: 'licenses.txt' },
    reportCompressedSize: false,
    chunkSizeWarningLimit: 800,
    rollupOptions: {
      output: {
        entryFileNames: 'page.js',
        chunkFileNames: 'page-[name].js',
        assetFileNames: 'page[extname]',
      },
    },
  },
  server: { proxy: { '/v1': process.env.FOLKMOOT_AT ?? 'http://127.0.0.1:7878' } },
});
