import { createRoot } from 'react-dom/client';
import '@xyflow/react/dist/base.css';
import './style/tokens.css';
import './style/parts.css';
import './style/shell.css';
import './style/runs.css';
import './style/run.css';
import './style/picture.css';
import './style/timeline.css';
import './style/compare.css';
import { split, take } from './api/token';
import { App } from './app';

// A link that is opened where the page is open already changes nothing but the fragment.
addEventListener('hashchange', () => {
  if (split(location.hash).token === null) return;
  take();
  location.reload();
});

const root = document.getElementById('root');
if (root) createRoot(root).render(<App token={take()} />);
